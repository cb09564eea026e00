"""Guess the number: answers, and optimal guessing against brute force."""

from functools import cache

import pytest

from textgames.exploration.guess_number import GuessNumber, guess_value, interval_value
from textgames.exploration.guessing import GuessState


@cache
def by_force(possible: tuple[int, ...], numbers: int, guesses_left: int, lost: int) -> int:
    """The least cost of finding one of some numbers, over every guess, inside and outside of what is possible."""
    if not possible or guesses_left == 0:
        return lost * len(possible)
    return len(possible) + min(
        by_force(tuple(n for n in possible if n < guess), numbers, guesses_left - 1, lost)
        + by_force(tuple(n for n in possible if n > guess), numbers, guesses_left - 1, lost)
        for guess in range(1, numbers + 1)
    )


@pytest.mark.parametrize("numbers", [2, 3, 7, 10])
@pytest.mark.parametrize("lost", [0, 1])
@pytest.mark.parametrize("guesses_left", [1, 2, 3, 6])
def test_optimal_guessing_is_that_of_brute_force(numbers, lost, guesses_left):
    expected = -by_force(tuple(range(1, numbers + 1)), numbers, guesses_left, lost) / numbers
    assert interval_value(numbers, guesses_left, lost) == pytest.approx(expected)
    values = [guess_value(1, numbers, guess, guesses_left, lost) for guess in range(0, numbers + 2)]
    assert max(values) == pytest.approx(expected)
    assert values[0] == pytest.approx(-1 + interval_value(numbers, guesses_left - 1, lost))


def test_a_hundred_numbers_take_5_80_guesses():
    """A binary tree with 100 nodes has 1, 2, 4, 8, 16, 32 and 37 of them on its levels."""
    assert interval_value(100, 10, 1) == pytest.approx(-(1 + 4 + 12 + 32 + 80 + 192 + 7 * 37) / 100)


def test_answers_and_metrics():
    game = GuessNumber()
    state = GuessState("26", ("50", "25", "60", "26"))
    assert game.observe(state, "player_0") == (
        "Guesses left: 6\nGuesses so far:\n1. 50: the number is lower\n2. 25: the number is higher\n"
        "3. 60: the number is lower\n4. 26: that is the number"
    )
    metrics = game.metrics(state, "player_0")
    assert metrics["possible"] == 1.0
    # 60 tells nothing, and costs a whole guess; 26 of the 24 numbers from 26 to 49 leaves 23
    after_26 = -1 + 23 / 24 * interval_value(23, 6, 1)
    assert metrics["regret"] == pytest.approx(1 + interval_value(24, 7, 1) - after_26)
    assert game.metrics(state._replace(guesses=("50", "25")), "player_0")["regret"] == 0.0
    assert game.metrics(state._replace(guesses=("50", "25")), "player_0")["possible"] == 24.0
