from .game import SILENCE, Werewolf
from .rules import NOBODY, SEER, WOLF, Phase, WerewolfState

__all__ = [
    "NOBODY",
    "SEER",
    "SILENCE",
    "WOLF",
    "Phase",
    "Werewolf",
    "WerewolfState",
]
