from .guess_number import GuessNumber
from .guessing import LOST_GUESSES

__all__ = [
    "LOST_GUESSES",
    "GuessNumber",
]
