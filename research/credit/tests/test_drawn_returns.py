"""Returns drawn from exact chances, against all that may happen and against play."""

from collections import Counter

import numpy as np
import pytest

from agents.episode import EpisodeTask
from agents.msgrpo.credit.batch import Start
from research.credit.instrument.batches import Setting, play
from research.credit.instrument.exact.drawn_returns import Chances, DrawnReturns
from research.credit.instrument.exact.truth import Truth
from research.credit.instrument.instrument import Instrument, methods_of
from research.credit.tests.helpers import PENALTY, Habit, direct_policy, distribution
from textgames import SCENARIOS
from textgames.registry import game_of

EPISODES = 20_000
CASES = [
    ("TextFrozenLake-v0", {"desc": ["SFF", "FHG"], "is_slippery": True}, "default"),
    ("TextFrozenLake-v0", {"desc": ["SFF", "FHG"], "is_slippery": True}, "random"),
    ("TextFrozenLake-v0", {"desc": ["SFF", "FHG"], "is_slippery": True}, "terminate"),
    ("TextBlackjack-v0", {}, "default"),
    ("TextKuhnPoker-v0", {}, "random"),
    ("TextMatrixGame-v0", {}, "default"),
]


def truth_of(name, settings, invalid_action, horizon=3):
    game = game_of(name, **settings)
    start = game.initial_state(np.random.default_rng(0))
    return Truth.of(Habit(), game, [start], horizon, format_penalty=PENALTY, invalid_action=invalid_action)


@pytest.mark.parametrize(("name", "settings", "invalid_action"), CASES)
def test_returns_have_the_distribution_of_all_that_may_happen(name, settings, invalid_action):
    truth = truth_of(name, settings, invalid_action)
    state, horizon = truth.graph.states[truth.graph.starts[0]], truth.graph.horizon
    task = EpisodeTask("game", name, 0)
    drawn = DrawnReturns(Habit(), Chances(truth), np.random.default_rng(0))
    for elapsed in range(horizon):
        if truth.graph.starts[0] not in truth.graph.layers[elapsed]:
            continue  # it can't be there then
        told = distribution(truth.graph.game, Habit(), state, horizon - elapsed, invalid_action)
        for number, player in enumerate(truth.graph.players):
            found = np.round(drawn.returns_from([Start(task, state, elapsed, player)], EPISODES)[0], 9)
            expected = Counter()
            for returns, chance in told.items():
                expected[returns[number]] += chance
            assert set(found.tolist()) <= set(expected)
            for value, chance in expected.items():
                error = (chance * (1 - chance) / EPISODES) ** 0.5
                assert abs(np.mean(found == value) - chance) <= 5 * error + 1e-9


def test_a_state_that_cannot_be_reached_is_refused():
    truth = truth_of("TextFrozenLake-v0", {"desc": ["SFF", "FHG"], "is_slippery": False}, "default")
    goal_side = max(truth.graph.layers[2].tolist())
    drawn = DrawnReturns(Habit(), Chances(truth), np.random.default_rng(0))
    with pytest.raises(ValueError, match="can't be reached after 0 steps"):
        drawn.returns_from([Start(EpisodeTask("g", "g", 0), truth.graph.states[goal_side], 0, "player_0")], 1)


def test_the_instrument_measures_the_same_of_vine_as_with_played_rollouts():
    policy = direct_policy()
    setting = Setting(SCENARIOS["frozen-lake-slippery"], 2, 4, max_steps=4)
    instrument = Instrument(policy, setting, batches=2)
    vine = methods_of(["vine"], setting)["vine"]
    drawn = instrument.assign("vine", vine)
    batch = play(policy, setting, 0)
    vine.assign(batch, np.random.default_rng(0))
    played = batch.rollouts.tokens
    assert played > 0
    assert drawn.extra_tokens == pytest.approx(played, rel=0.5)  # other draws, and the mean of two batches
    truth = np.concatenate([instrument.truth.advantages(each) for b in instrument.batches for each in b.trajectories])
    told = np.concatenate([np.asarray(own) for credit in drawn.credits for own in credit.advantages])
    assert np.corrcoef(truth, told)[0, 1] > 0.5
