"""A warm start: a model learns the form of answers, and a teacher's moves, before reinforcement learning begins.

``teacher -> demonstrate -> decisions -> imitate -> model``; the command is ``textbench warmup``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
