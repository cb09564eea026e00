"""``planner`` in a small game of hidden information that came without a player of its own."""

from typing import Any

import pytest

import textgames
from agents import load_agent
from agents.analysis.exploitability import measure
from agents.baselines.games.equilibrium import EquilibriumPlayer
from agents.baselines.search import find_search_player, search_player_of
from tests.agents.baselines.own_poker import KuhnPoker, Undealt


class Dealt(KuhnPoker):
    """Kuhn poker with a setting that is no attribute of the game."""

    def __init__(self, *, ante: float = 1.0) -> None:
        self._worth = ante

    def transition(self, state: Any, joint_action: Any, rng: Any) -> Any:
        after, rewards, over = super().transition(state, joint_action, rng)
        return after, {player: self._worth * reward for player, reward in rewards.items()}, over


class Shared(KuhnPoker):
    """The same, in which both players win what one of them wins."""

    def transition(self, state: Any, joint_action: Any, rng: Any) -> Any:
        after, rewards, over = super().transition(state, joint_action, rng)
        return after, dict.fromkeys(rewards, rewards["player_0"]), over


@pytest.mark.parametrize("game", [KuhnPoker(), Dealt(ante=3.0), textgames.openspiel("kuhn_poker")])
def test_planner_plays_the_equilibrium_of_a_game_of_ones_own(game):
    assert isinstance(find_search_player(game), EquilibriumPlayer)
    planner, greedy = measure(load_agent("planner"), game), measure(load_agent("greedy"), game)
    assert planner.value < 0.01
    assert greedy.value > 10 * planner.value


def test_equal_games_are_solved_once_and_others_are_not_mixed_up():
    for ante in (1.0, 2.0, 5.0):
        game = Dealt(ante=ante)
        assert measure(load_agent("planner"), game).returns["player_0"] == pytest.approx(-ante / 18, abs=0.01 * ante)


def test_why_there_is_no_equilibrium_is_told():
    with pytest.raises(ValueError, match=r"greedy and planner can't play Undealt.*has no initial_outcomes"):
        search_player_of(Undealt())
    with pytest.raises(ValueError, match=r"greedy and planner can't play Shared.*zero-sum"):
        search_player_of(Shared())
