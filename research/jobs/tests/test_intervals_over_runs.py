"""Intervals over runs and episodes, against simulation."""

import math
from math import inf

import numpy as np
import pytest
from scipy import stats

from agents.common.intervals import mean_estimate, student
from research.jobs import intervals


@pytest.mark.parametrize(("runs", "worlds", "least"), [(2, 400, 0.93), (3, 400, 0.93), (8, 60, 0.85)])
def test_intervals_over_runs_and_episodes_cover(runs, worlds, least, monkeypatch):
    """A bootstrap's percentiles hold the truth of two runs in 77%; the standard error of 400 samples is 1.1%."""
    monkeypatch.setattr(intervals, "RESAMPLES", 500)  # an end's own error is then a tenth of the interval
    rng, held = np.random.default_rng(runs), 0
    for _ in range(worlds):
        episodes = 0.2 * rng.standard_normal(100)
        levels = 0.6 + 0.1 * rng.standard_normal((runs, 1))
        trained, base = (each + 0.3 * rng.standard_normal((runs, 100)) for each in (levels + episodes, 0.3 + episodes))
        _, low, high = intervals.difference_of_means(trained, base[0])
        held += low <= 0.3 <= high
    assert held / worlds >= least


def test_few_runs_have_students_interval_joined_with_the_episodes_and_one_has_none():
    rng = np.random.default_rng(0)
    base = rng.random(100)
    trained = base + 0.5 + 0.1 * rng.standard_normal((1, 100)) + np.array([[0.0], [0.2], [0.1]])
    assert intervals.difference_of_means(trained[:1], base)[1:] == (None, None)
    assert intervals.ratio_of_means(trained[:1], base)[1:] == (None, None)
    assert intervals.mean_over_runs(trained[:1], (0, 2)) == mean_estimate(trained[0], (0, 2))
    value, low, high = intervals.difference_of_means(trained, base)
    over_runs = stats.t.ppf(0.975, 2) * 0.1 / math.sqrt(3)
    half = math.hypot(over_runs, 1.96 * stats.sem((trained - base).mean(axis=0)))
    assert (low, high) == (pytest.approx(value - half), pytest.approx(value + half))
    ratio = intervals.ratio_of_means(trained, np.full(100, 0.5))  # by a constant: twice the mean
    assert np.array(ratio) == pytest.approx(2 * np.array(intervals.mean_over_runs(trained)))


def test_equal_episodes_of_equal_runs_leave_nothing_open():
    assert intervals.mean_over_runs(np.full((3, 5), 2.0)) == pytest.approx((2.0, 2.0, 2.0))
    assert intervals.difference_of_means(np.full((3, 5), 2.0), np.full(5, 0.5)) == pytest.approx((1.5, 1.5, 1.5))
    assert intervals.ratio_of_means(np.full((3, 5), 2.0), np.full(5, 0.5)) == pytest.approx((4.0, 4.0, 4.0))


def test_a_ratio_to_what_may_be_nothing_has_no_interval():
    trained = np.array([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 0.0]])
    assert intervals.ratio_of_means(trained, np.zeros(4)) == (inf, None, None)
    # a third of the resamples don't have the one episode that the base has won
    assert intervals.ratio_of_means(trained, np.array([1.0, 0.0, 0.0, 0.0])) == (3.5, None, None)


def test_samples_are_tested_together_and_what_they_are_less_of_is_no_test():
    plain = {seed: 0.1 * seed for seed in range(4)}
    better = {seed: value + 0.2 + 0.01 * seed for seed, value in plain.items() if seed}
    samples = {name: intervals.paired(own, plain) for name, own in {"plain": plain, "better": better}.items()}
    assert samples["better"] == pytest.approx([0.21, 0.22, 0.23])
    alone, both = intervals.student_tests(samples, ["plain"]), intervals.student_tests(samples)
    raw = stats.ttest_1samp(samples["better"], 0.0).pvalue
    assert alone["better"] == (student(samples["better"]), pytest.approx(raw), pytest.approx(raw))
    assert both["better"].p_holm == pytest.approx(2 * raw)
    assert alone["plain"] == ((0.0, 0.0, 0.0), 1.0, 1.0)
    assert intervals.student_tests({"a": np.full(3, 0.1)})["a"].p_value == 1.0, "rounding is no difference"
