"""The update: rows of tokens are packed, scored, turned into a loss and stepped on, in one process or several.

Begin at :mod:`agents.msgrpo.learner.update`. It has the tokens of a step packed and scored by the room ``scoring``,
and steps on their ``loss``. ``prepare`` makes a model ready to be trained, with a LoRA ``adapter`` if one is wanted;
``distributed`` are the processes that train together.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
