"""Intervals, tests and sample sizes against independent computations and against simulation."""

import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from benchmark.score import statistics as stats


def test_the_interval_agrees_with_scipys_bca_bootstrap():
    values = np.random.default_rng(3).exponential(size=60)
    ours = stats.mean_estimate(values)
    theirs = scipy_stats.bootstrap((values,), np.mean, n_resamples=50_000, method="BCa", rng=5).confidence_interval
    assert ours.value == pytest.approx(values.mean())
    width = theirs.high - theirs.low
    assert ours.low == pytest.approx(theirs.low, abs=0.05 * width)
    assert ours.high == pytest.approx(theirs.high, abs=0.05 * width)


def test_the_ratios_interval_agrees_with_scipys_paired_bootstrap():
    rng = np.random.default_rng(4)
    responses = rng.integers(1, 9, size=80).astype(float)
    invalid = rng.binomial(responses.astype(int), 0.3).astype(float)
    (ours,) = stats.bootstrap(np.stack([invalid, responses], axis=1), [stats.ratio(0, 1)])
    theirs = scipy_stats.bootstrap(
        (invalid, responses),
        lambda a, b, axis: a.sum(axis=axis) / b.sum(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=50_000,
        rng=5,
    ).confidence_interval
    assert ours.value == pytest.approx(invalid.sum() / responses.sum())
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.01)


def test_the_same_episodes_always_give_the_same_interval():
    values = np.random.default_rng(0).normal(size=50)
    assert stats.mean_estimate(values) == stats.mean_estimate(values.copy())


def test_one_episode_has_no_interval_and_equal_ones_no_width():
    assert stats.mean_estimate(np.array([2.0])) == (2.0, None, None)
    assert stats.mean_estimate(np.full(9, 2.0)) == pytest.approx((2.0, 2.0, 2.0))


def test_all_successes_are_not_certainty():
    estimate = stats.success_estimate(np.ones(50), stats.mean_estimate(np.ones(50)))
    assert estimate.value == 1.0
    assert estimate.high == 1.0
    assert 0.90 < estimate.low < 0.95  # Wilson: n / (n + z^2)
    assert estimate.low == pytest.approx(50 / (50 + 1.959964**2), abs=1e-6)


def test_a_scale_without_a_span_gives_no_normalised_score():
    table = np.ones((10, 3))
    (estimate,) = stats.bootstrap(table, [stats.normalised(0, 1, 2)])
    assert np.isnan(estimate.value)
    assert estimate[1:] == (None, None)


def test_the_normalised_score_of_the_references_themselves_is_0_and_1():
    rng = np.random.default_rng(1)
    random, optimal = rng.normal(0, 1, size=50), rng.normal(3, 1, size=50)
    for own, wanted in ((random, 0.0), (optimal, 1.0)):
        (estimate,) = stats.bootstrap(np.stack([own, random, optimal], axis=1), [stats.normalised(0, 1, 2)])
        assert estimate == pytest.approx((wanted, wanted, wanted))


def test_large_tables_go_through_in_blocks_with_the_same_result(monkeypatch):
    values = np.random.default_rng(2).normal(size=700)
    whole = stats.mean_estimate(values)
    monkeypatch.setattr(stats, "_BLOCK", 700 * 300)  # blocks of 300 resamples, 1500 in all
    blocked = stats.mean_estimate(values)
    assert blocked.value == whole.value
    assert blocked[1:] == pytest.approx(whole[1:], abs=0.01)


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=40))
@settings(max_examples=60, deadline=None)
def test_an_interval_is_ordered_and_within_the_data(values):
    table = np.array(values)
    estimate = stats.mean_estimate(table)
    assert table.min() - 1e-9 <= estimate.low <= estimate.high <= table.max() + 1e-9


def test_the_paired_test_is_exact_for_few_pairs():
    differences = np.array([0.5, 1.0, 1.5, -0.25, 2.0])
    flips = np.array(list(product([1, -1], repeat=5)))
    extreme = np.abs((flips * differences).mean(axis=1)) >= abs(differences.mean()) - 1e-12
    assert stats.paired_p_value(differences) == pytest.approx(extreme.mean())


def test_zero_differences_change_no_p_value_and_are_no_evidence():
    differences = np.array([0.5, 1.0, 1.5, -0.25, 2.0])
    padded = np.concatenate([differences, np.zeros(20)])
    assert stats.paired_p_value(padded) == pytest.approx(stats.paired_p_value(differences))
    assert stats.paired_p_value(np.zeros(20)) == 1.0
    assert stats.paired_p_value(np.array([0.0, 3.0, 0.0])) == 1.0


def test_above_the_limit_the_t_test_takes_over_and_agrees(monkeypatch):
    differences = np.random.default_rng(6).normal(0.05, 1, size=900)
    permuted = stats.paired_p_value(differences)
    monkeypatch.setattr(stats, "PERMUTATION_LIMIT", 100)
    assert stats.paired_p_value(differences) == pytest.approx(permuted, abs=0.02)


def test_holm_by_hand():
    assert stats.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert stats.holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert stats.holm([]) == []


def test_the_number_of_episodes_has_the_power_that_it_promises():
    rng = np.random.default_rng(8)
    pilot = rng.normal(size=4000)
    pilot = (pilot - pilot.mean()) / pilot.std(ddof=1) + 0.4  # mean 0.4, deviation 1
    needed = stats.episodes_needed(pilot)
    assert needed == 50  # ((1.95996 + 0.84162) / 0.4)^2 = 49.06, rounded up
    samples = rng.normal(0.4, 1, size=(4000, needed))
    p_values = scipy_stats.ttest_1samp(samples, 0.0, axis=1).pvalue
    assert (p_values < 0.05).mean() == pytest.approx(0.8, abs=0.03)


def test_no_number_of_episodes_shows_no_difference():
    assert stats.episodes_needed(np.array([1.0, -1.0])) is None
    assert stats.episodes_needed(np.array([1.0])) is None
    assert stats.episodes_needed(np.full(10, 0.5)) == 2


def test_the_mean_over_scenarios_weighs_each_the_same():
    tables = [np.full((10, 1), 1.0), np.full((1000, 1), 0.0)]
    estimate = stats.mean_of_estimates(tables, [stats.column(0)] * 2)
    assert estimate == pytest.approx((0.5, 0.5, 0.5))


def coverage(draw, truth, statistic, repetitions, rng):
    """How often the interval holds the truth."""
    held = 0
    for _ in range(repetitions):
        (estimate,) = stats.bootstrap(draw(rng), [statistic])
        held += estimate.low <= truth <= estimate.high
    return held / repetitions


def snake_like(rng, episodes=50):
    """Returns as Snake has them: apples, now and then a death."""
    return (rng.poisson(1.5, size=episodes) - (rng.random(episodes) < 0.3)).astype(float)[:, None]


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    measured = coverage(snake_like, 1.2, stats.column(0), 400, np.random.default_rng(10))
    # binomial standard error 1.1%; the bootstrap of 50 skewed values itself covers about 94%
    assert 0.91 <= measured <= 0.98


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "truth", "statistic"),
    [
        (snake_like, 1.2, stats.column(0)),
        (lambda rng: (rng.random((50, 1)) < 0.6).astype(float), 0.6, stats.column(0)),
        (lambda rng: rng.exponential(size=(50, 1)), 1.0, stats.column(0)),
        (
            lambda rng: np.stack([rng.binomial(8, 0.2, 50), np.full(50, 8)], axis=1).astype(float),
            0.2,
            stats.ratio(0, 1),
        ),
        (
            lambda rng: np.stack([rng.normal(1, 1, 50), rng.normal(0, 1, 50), rng.normal(4, 1, 50)], axis=1),
            0.25,
            stats.normalised(0, 1, 2),
        ),
    ],
    ids=["snake", "success", "skewed", "invalid rate", "normalised"],
)
def test_coverage_by_simulation(draw, truth, statistic):
    measured = coverage(draw, truth, statistic, 4000, np.random.default_rng(11))
    assert 0.92 <= measured <= 0.97, measured


@pytest.mark.slow
def test_the_permutation_test_errs_as_often_as_its_level_says():
    rng = np.random.default_rng(12)
    rejected = [stats.paired_p_value(rng.laplace(size=50)) < 0.05 for _ in range(600)]
    assert 0.03 <= np.mean(rejected) <= 0.075


def test_no_warning_from_degenerate_columns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stats.bootstrap(np.array([[0.0, 0.0], [0.0, 0.0]]), [stats.column(0), stats.ratio(0, 1)])
