"""Stopping when the interval is narrow: the planned looks cover the truth, looking after every batch doesn't."""

import numpy as np
import pytest

from agents.common import intervals as stats
from benchmark.score.luck import corrected
from benchmark.score.stopping import FIRST_LOOK, MOST, confidence_of, half_width, looks
from tests.benchmark.score.simulation import rounds

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
    assert confidence_of({"until": None, "episodes": 240}, [120]) == confidence_of({"episodes": 50}) == 0.95


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


SLOW = [pytest.param(skill, 200, marks=pytest.mark.slow) for skill in (1.0, 0.5, 0.0)]


@pytest.mark.parametrize(("skill", "runs"), [(0.95, 60), *SLOW])
def test_the_interval_at_which_a_run_stops_covers_the_truth(skill, runs):
    """A run that is never narrow ends with all its episodes, and counts with the interval that it then has."""
    numbers, covered = looks(200), []
    true, played = rounds(skill, runs, 200, np.random.default_rng(7))
    for returns, start, luck, _, blind in zip(*played, strict=True):
        for count in numbers:
            found = corrected(returns[:count], start[:count], luck[:count], (0.0, 1.0))
            table = np.stack([found.values, blind[:count], start[:count]], axis=1)
            figure = stats.normalised(0, 1, 2, ends=found.ends)
            (one,) = stats.bootstrap(table, [figure], 1 - 0.05 / len(numbers))
            low, high = (one.value if end is None else end for end in (one.low, one.high))
            if (high - low) / 2 <= WIDTH:
                break
        covered.append(low - 1e-9 <= true <= high + 1e-9)
    assert np.mean(covered) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / runs)
