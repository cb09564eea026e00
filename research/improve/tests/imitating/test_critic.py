"""Decisions judged by a critic: what is imitated loses less by one that knows, and no less by one that doesn't."""

from dataclasses import replace
from math import exp

import numpy as np
import pytest

from agents import SearchPlayer, search_player_of
from benchmark import UsageError
from benchmark.runs import find_scenarios
from research.improve.around.ranks import learned_value
from research.improve.methods.imitating.critic import criticised, weights_of
from research.improve.methods.imitating.offline import imitated
from research.improve.tests.conftest import USELESS

pytest.importorskip("torch")
from research.improve.values.measure import SCENARIO, random_play
from research.improve.values.network import About, StepValue, ValuePlayer

SOLVER = search_player_of(find_scenarios([SCENARIO])[SCENARIO].game())


class Useless(SearchPlayer):
    """Values that have nothing to do with the game."""

    def values(self, request):
        rng = np.random.default_rng(len(request.observation) + (request.steps_left or 0))
        return dict(zip(request.legal_actions, rng.random(4), strict=True))


def lost(decision) -> float:
    values = SOLVER.values(decision.request)
    return max(values.values()) - values[decision.action]


@pytest.fixture(scope="module")
def play():
    return random_play(SCENARIO, 150, 0)


def mean_loss(episodes, weights=None) -> float:
    losses = [np.mean([lost(each) for each in one.decisions]) for one in episodes]
    return float(np.average(losses, weights=weights))


@pytest.mark.parametrize("method", ["filtered", "weighted"])
def test_what_is_imitated_loses_less_by_a_critic_that_knows_and_not_by_a_useless_one(play, method):
    def by(critic: SearchPlayer) -> float:
        found = criticised(play, critic, advantages=True)
        if method == "weighted":
            return mean_loss(found, weights_of([one.result for one in found], 1.0))
        return mean_loss([one.episode for one in imitated(found, "filtered", 0.25, 1.0)])

    everything = mean_loss(criticised(play, SOLVER, advantages=True))
    assert by(SOLVER) < 0.5 * everything
    assert by(Useless("")) > 0.8 * everything


@pytest.mark.slow
def test_a_learned_critic_knows_and_one_that_has_learnt_nothing_does_not(play, values):
    def by(value: str) -> float:
        found = criticised(play, learned_value(values / value)[0], advantages=True)
        return mean_loss([one.episode for one in imitated(found, "filtered", 0.25, 1.0)])

    everything = mean_loss(criticised(play, SOLVER, advantages=True))
    assert by("learned") < 0.4 * everything
    assert np.mean([*map(by, USELESS)]) > 1.5 * by("learned")  # they prefer one action everywhere, which may be good


def test_results_and_weights_by_hand(play):
    one = play[0].decisions[0]
    values = SOLVER.values(one.request)
    advantage, value = (criticised(play[:1], SOLVER, advantages=each)[0].result for each in (True, False))
    assert value == values[one.action]
    assert advantage == pytest.approx(value - max(values.values()))
    mean = (exp(0.5) + exp(-0.5)) / 2
    assert weights_of([1.0, -1.0], 2.0) == pytest.approx([exp(0.5) / mean, exp(-0.5) / mean])
    steep = weights_of([1.0, 0.0], 0.01)
    assert steep[0] / steep[1] == pytest.approx(20.0)


def test_the_line_tells_what_the_critic_expects(play):
    found = criticised(play, SOLVER, advantages=False)
    shown = imitated(found, "return", 0.25, 1.0)
    best = max(range(len(found)), key=lambda at: found[at].result)
    assert shown[best].line == "Your result: 10 of 10."


def test_without_a_list_of_legal_actions_there_is_a_value_and_no_advantage(play):
    critic = ValuePlayer(StepValue(About(scenarios=(SCENARIO,), targets="mc", decisions=1)))
    one = play[0].decisions[0]
    unlisted = [play[0]._replace(decisions=[one._replace(request=replace(one.request, legal_actions=()))])]
    (found,) = criticised(unlisted, critic, advantages=False)
    assert found.result == pytest.approx(critic.values(one.request)[one.action], rel=1e-4)
    with pytest.raises(UsageError, match="lists no legal actions, which a critic compares: --set method=return"):
        criticised(unlisted, critic, advantages=True)
