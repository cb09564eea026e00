"""Stopping when the interval is narrow: the planned looks cover the truth, looking after every batch doesn't."""

from functools import cache

import numpy as np
import pytest

from agents.common import intervals as stats
from benchmark.score.luck import corrected
from benchmark.score.stopping import FIRST_LOOK, MOST, confidence_of, half_width, looks
from tests.benchmark.score.luck.lake_simulation import HORIZON, Lakes

WIDTH = 0.1


def test_the_looks_double_up_to_the_most():
    assert looks(400) == [50, 100, 200, 400]
    assert looks(300) == [50, 100, 200, 300]
    assert looks(MOST) == [50, 100, 200, 400, 800, 1600]
    assert looks(30) == [30]
    assert looks(FIRST_LOOK) == [FIRST_LOOK]
    # a run that was extended has looked at its old ends, too
    assert looks(240, [120]) == [50, 100, 120, 200, 240]
    assert looks(400, [100, 200]) == looks(400)
    assert confidence_of({"until": 0.05, "episodes": 240}, [120]) == pytest.approx(1 - 0.05 / 5)
    assert confidence_of({"until": None, "episodes": 240}, [120]) == 0.95


def test_all_looks_together_have_the_level():
    for most in (30, 50, 400, MOST):
        confidence = confidence_of({"until": 0.05, "episodes": most})
        assert (1 - confidence) * len(looks(most)) == pytest.approx(0.05)
    assert confidence_of({"episodes": 50}) == confidence_of({"until": None, "episodes": 50}) == 0.95


def test_the_normalised_score_is_judged_where_there_is_one():
    wide, narrow = {"value": 0.5, "low": 0.0, "high": 1.0}, {"value": 0.5, "low": 0.4, "high": 0.6}
    fixed = {"value": 1.0, "low": None, "high": None}
    row = {"normalized": narrow, "luck_free_return": None, "mean_return": wide}
    assert half_width(row) == pytest.approx(0.1)
    assert half_width(row | {"normalized": None}) == 0.5
    assert half_width(row | {"normalized": None, "luck_free_return": narrow}) == pytest.approx(0.1)
    assert half_width(row | {"normalized": fixed}) == 0.0
    below = {"value": -2.0, "low": -4.0, "high": 0.0}  # by how much it is worse than blind play needn't be known
    assert half_width(row | {"normalized": below}) == 0.0
    assert half_width(row | {"normalized": below | {"high": 0.3}}) == pytest.approx(0.15)
    assert half_width(row | {"normalized": None, "mean_return": below}) == 2.0


@cache
def lakes():
    return Lakes()


def stopped(skill, runs, most, numbers, confidence, free=True):
    """How often the interval at which a run stops covers the truth, and the mean number of episodes.

    A run that is never narrow ends with all its episodes, and counts with the interval that it then has.
    """
    policy, uniform = lakes().policy(skill), lakes().value_of(lakes().policy(0.0))
    optimal = lakes().v[HORIZON][:, 0]
    true = (lakes().value_of(policy).mean() - uniform.mean()) / (optimal.mean() - uniform.mean())
    played = lakes().play(policy, runs, most, np.random.default_rng(7))
    covered, taken = [], []
    for run in range(runs):
        for count in numbers:
            returns, start, luck, layout = (
                column[run, :count] for column in (played.returns, played.start, played.luck, played.layout)
            )
            figure = stats.normalised(0, 1, 2, (0.0, 1.0))
            if free:
                found = corrected(returns, start, luck, (0.0, 1.0))
                returns, figure = found.values, stats.normalised(0, 1, 2, ends=found.ends)
            table = np.stack([returns, uniform[layout], optimal[layout]], axis=1)
            (one,) = stats.bootstrap(table, [figure], confidence)
            low, high = (one.value if end is None else end for end in (one.low, one.high))
            if (high - low) / 2 <= WIDTH:
                break
        covered.append(low - 1e-9 <= true <= high + 1e-9)
        taken.append(count)
    return np.mean(covered), np.mean(taken)


PLANNED = {"numbers": looks(200), "confidence": 1 - 0.05 / len(looks(200))}


def check_planned(skill, runs):
    share, episodes = stopped(skill, runs, 200, **PLANNED)
    assert share >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / runs)
    assert episodes <= 200


def test_planned_looks_cover_the_truth():
    check_planned(0.95, runs=60)


@pytest.mark.slow
@pytest.mark.parametrize("skill", [1.0, 0.95, 0.5, 0.0])
def test_planned_looks_cover_the_truth_in_many_runs(skill):
    check_planned(skill, runs=200)
