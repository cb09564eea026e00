"""The update: rows of tokens are packed, scored, turned into a loss and stepped on, in one process or several.

Begin at :mod:`agents.msgrpo.learner.update`. It takes the ``work`` of a step, has its tokens scored by the room
``scoring``, weighs them where the sampler was another policy (``importance``) and steps on their ``loss``.
``prepare`` makes a model ready to be trained, with a LoRA ``adapter`` where one is wanted; ``distributed`` are the
processes that train together.
"""
