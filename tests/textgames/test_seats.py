"""One seat of a game of several players as a Gymnasium environment, the others inside it."""

from typing import Any

import gymnasium as gym
import pytest

import textgames  # noqa: F401 - registers the ids


def test_an_opponent_of_ones_own_plays_inside():
    asked = []

    def first_free(turn: Any) -> str:
        asked.append((turn.player, turn.observation, turn.legal_actions))
        return f"<action>{turn.legal_actions[0]}</action>"

    env: Any = gym.make("TextTicTacToe-v0", opponents=first_free)
    env.reset(seed=0)
    env.step("b2")
    observation, *_ = env.step("c1")
    assert "\n3 O O .\n2 . X .\n1 . . X\n" in observation
    assert [(player, legal[0]) for player, _, legal in asked] == [("player_1", "a3"), ("player_1", "b3")]
    assert asked[0][1].startswith("You play O.")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seat": "player_7"}, "seat must be one of player_0, player_1, got 'player_7'"),
        ({"opponents": 7}, "opponents must give player_1 'random', an agent such as 'planner'"),
        ({"opponents": {"player_0": "random"}}, "opponents must give player_1"),
        ({"opponents": None}, 'opponents="random"'),
    ],
)
def test_a_seat_without_its_opponents_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        gym.make("TextTicTacToe-v0", **settings)
