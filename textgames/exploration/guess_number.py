"""Guess the number: a number is hidden, and every guess is answered with higher or lower.

Optimal guessing is computed exactly: what is known is always an interval, so the dynamic program has one state for
each length of it and each number of guesses left.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from textgames.exploration.deduction import Indices
from textgames.exploration.guessing import LOST_GUESSES, GuessingGame, GuessState
from textgames.settings import check_whole
from textgames.texts.commands import Command

HIGHER, LOWER, RIGHT = "the number is higher", "the number is lower", "that is the number"


class GuessNumber(GuessingGame):
    """Guess a number from 1 to ``numbers``. Every guess costs 1; a game that ends without the number costs 1 more.

    Args:
        numbers: the largest number that may be hidden, 2 to 1000; all are equally likely.
        max_guesses: the game ends after this many.
    """

    noun = "number"

    def __init__(self, *, numbers: int = 100, max_guesses: int = 10) -> None:
        check_whole("numbers", numbers, 2, 1000)
        choices = range(1, int(numbers) + 1)
        super().__init__(tuple(map(str, choices)), Command("{number}", number=choices), max_guesses)

    def answer(self, guess: str, secret: str) -> str:
        if guess == secret:
            return RIGHT
        return HIGHER if int(guess) < int(secret) else LOWER

    @staticmethod
    def answers(secrets: tuple[str, ...]) -> NDArray[np.integer]:
        every = np.arange(len(secrets))
        return np.asarray(np.sign(every - every[:, np.newaxis]) + 1)

    def regret(self, candidates: Indices, guess: int, guesses_left: int) -> float:
        low, high = int(candidates[0]) + 1, int(candidates[-1]) + 1  # what is possible is always an interval
        best = interval_value(high - low + 1, guesses_left, LOST_GUESSES)
        return max(0.0, best - guess_value(low, high, guess + 1, guesses_left, LOST_GUESSES))

    def action_help(self, state: GuessState, player: str) -> str:
        return f"a whole number from 1 to {len(self.secrets)}"

    def instructions(self, player: str) -> str:
        return (
            f"You are guessing a number. A whole number from 1 to {len(self.secrets)} is hidden; all are equally "
            "likely. Find it.\n"
            "Each turn you guess a number, and are told whether the hidden number is higher or lower than your guess.\n"
            f"{self.how_it_pays()}\n"
            f"Action: a whole number from 1 to {len(self.secrets)}."
        )


@lru_cache(maxsize=100_000)
def interval_value(length: int, guesses_left: int, lost: int) -> float:
    """Return the expected return, ``-guesses``, of optimal guessing among ``length`` numbers; ``lost`` more for a loss.

    ``V(0, h) = 0``, ``V(n, 0) = -lost`` and ``V(n, h) = -1 + max_k ((k-1) V(k-1, h-1) + (n-k) V(n-k, h-1)) / n``.
    Guesses outside of the interval tell nothing, and are never better.
    """
    if length == 0 or guesses_left == 0:
        return -float(lost) if length else 0.0
    # with more guesses than numbers, their limit plays no part
    guesses_left = min(guesses_left, length)
    return max(guess_value(1, length, guess, guesses_left, lost) for guess in range(1, (length + 1) // 2 + 1))


def guess_value(low: int, high: int, guess: int, guesses_left: int, lost: int) -> float:
    """Return the expected return of a guess at a number from ``low`` to ``high``, and optimal guessing after it."""
    length = high - low + 1
    if not low <= guess <= high:
        return -1.0 + interval_value(length, guesses_left - 1, lost)
    below, above = guess - low, high - guess
    return -1.0 + (
        (below * interval_value(below, guesses_left - 1, lost) + above * interval_value(above, guesses_left - 1, lost))
        / length
    )
