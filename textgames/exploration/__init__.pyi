from .bandit import Bandit, Evidence, exploration_bonuses, read_evidence
from .guess_number import GuessNumber
from .guessing import LOST_GUESSES

__all__ = [
    "LOST_GUESSES",
    "Bandit",
    "Evidence",
    "GuessNumber",
    "exploration_bonuses",
    "read_evidence",
]
