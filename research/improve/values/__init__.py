"""What an action is worth here, learnt from recorded play: ``network``, ``learning``, and the ``folder`` of one."""
