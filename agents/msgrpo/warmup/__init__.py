"""A warm start: a model learns the form of answers, and a teacher's moves, before reinforcement learning begins.

``teacher -> demonstrate -> decisions -> imitate -> model``; the command is ``textbench warmup``.
"""

from agents.common.progress import Progress
from agents.msgrpo.warmup.demonstrations import demonstrate
from agents.msgrpo.warmup.imitation import Imitation, TaughtDecision, imitate

__all__ = ["Imitation", "Progress", "TaughtDecision", "demonstrate", "imitate"]
