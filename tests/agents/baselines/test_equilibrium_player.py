"""``planner`` in a small game of hidden information that came without a player of its own."""

from typing import Any

import pytest

import textgames
from agents import load_agent
from agents.analysis.exploitability import measure
from agents.baselines.games.equilibrium import EquilibriumPlayer
from agents.baselines.search import find_search_player, search_player_of
from tests.agents.baselines.own_game import Hiding, Undealt


class Shared(Hiding):
    """The same, in which both players win what one of them wins."""

    def outcomes(self, state: str, joint_action: Any) -> list[Any]:
        ((_, after, rewards, over),) = super().outcomes(state, joint_action)
        return [(1.0, after, dict.fromkeys(rewards, rewards["player_1"]), over)]


@pytest.mark.parametrize("game", [Hiding(), Hiding(worth=3.0), textgames.openspiel("kuhn_poker")])
def test_planner_plays_the_equilibrium_of_a_game_of_ones_own(game):
    assert isinstance(find_search_player(game), EquilibriumPlayer)
    planner, greedy = measure(load_agent("planner"), game), measure(load_agent("greedy"), game)
    assert planner.value < 0.01
    assert greedy.value > 10 * planner.value


def test_equal_games_are_solved_once_and_others_are_not_mixed_up():
    for worth in (1.0, 2.0, 5.0):
        found = measure(load_agent("planner"), Hiding(worth=worth))
        assert found.returns["player_1"] == pytest.approx(worth / (1 + worth), abs=0.01)


def test_why_there_is_no_equilibrium_is_told():
    with pytest.raises(ValueError, match=r"greedy and planner can't play Undealt.*has no initial_outcomes"):
        search_player_of(Undealt())
    with pytest.raises(ValueError, match=r"greedy and planner can't play Shared.*zero-sum"):
        search_player_of(Shared())
