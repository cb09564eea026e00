"""Cliff walking against Gymnasium's table, and its exact values."""

import itertools

import gymnasium as gym
import pytest

from textgames.planning.cliff_walking import ACTIONS, GOAL, START, CliffWalking
from textgames.solving.blind import blind_value
from textgames.solving.value_iteration import ValueIteration


@pytest.mark.parametrize("is_slippery", [False, True])
def test_outcomes_are_gymnasiums_table(is_slippery):
    game, table = (
        CliffWalking(is_slippery=is_slippery),
        gym.make("CliffWalking-v1", is_slippery=is_slippery).unwrapped.P,
    )
    assert len(table) == 48
    for cell, (action, name) in itertools.product(range(GOAL), enumerate(ACTIONS)):
        told = [
            (chance, after, rewards["player_0"], over)
            for chance, after, rewards, over in game.outcomes(cell, {"player_0": name})
        ]
        assert told == table[cell][action]


@pytest.mark.parametrize(
    ("is_slippery", "horizon", "optimal", "uniform"),
    [(False, 15, -13.0, -220.0099), (False, 100, -13.0, -1083.0031), (True, 100, -63.0134, -1083.0031)],
)
def test_the_values_of_the_start(is_slippery, horizon, optimal, uniform):
    """Uniform play goes in every direction with equal chances on either ground, so its value is the same on both."""
    game = CliffWalking(is_slippery=is_slippery)
    assert ValueIteration(game).value(START, horizon, "player_0") == pytest.approx(optimal, abs=1e-4)
    assert blind_value(game, START, horizon, "player_0", {}) == pytest.approx(uniform, abs=1e-4)


def test_slips_are_told():
    game = CliffWalking(is_slippery=True)
    assert game.what_happened(25, {"player_0": "right"}, 13, "player_0") == "slipped up instead of right"
    fell = "slipped down instead of right; fell off the cliff, back to the start"
    assert game.what_happened(25, {"player_0": "right"}, START, "player_0") == fell
    assert game.what_happened(25, {"player_0": "right"}, 26, "player_0") == ""
