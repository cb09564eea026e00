"""Values of actions, learnt from recorded play: ``network``, ``learning``, and the ``folder`` of one."""
