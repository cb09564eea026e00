"""Intervals against those of scipy, against simulation, and as text and JSON."""

import json
import math
from math import inf, nan

import numpy as np
import pytest
from scipy import stats

from agents.common import intervals
from agents.common.intervals import CONFIDENCE, Estimate


def test_an_estimate_is_told_with_its_interval():
    assert f"{Estimate(0.5124, 0.47, 0.555):.3f}" == "0.512 [0.470, 0.555]"
    assert f"{Estimate(-0.0001, -0.01, 0.01):z.2f}" == "0.00 [-0.01, 0.01]"
    assert f"{Estimate(0.5):.2f}" == "0.50"
    assert f"{Estimate(nan):.2f}" == f"{Estimate(inf):.2f}" == "-"
    assert json.dumps(Estimate(nan, 0.5).to_json(), allow_nan=False) == '{"value": null, "low": 0.5, "high": null}'


def test_student_interval_is_scipys():
    values = np.array([0.1, 0.4, -0.2, 0.3])
    expected = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    assert intervals.student(values)[1:] == pytest.approx(expected)
    assert intervals.student([0.4]) == (0.4, None, None)
    assert not np.isfinite(intervals.student([]).value)


def test_values_of_one_episode_count_once_in_a_normal_interval():
    values = np.random.default_rng(1).normal(size=50)
    once = intervals.half_interval(values)
    assert once == pytest.approx(1.96 * stats.sem(values))
    assert intervals.half_interval(np.repeat(values, 4), np.repeat(np.arange(50), 4)) == pytest.approx(once)
    assert np.isnan(intervals.half_interval([0.1, 0.2], [7, 7]))


def test_figures_of_equal_parts_are_their_own_interval_and_no_end_lies_beyond_what_is_possible():
    assert intervals.over_rows(np.full((7, 1), 0.1), intervals.mean(0)) == pytest.approx((0.1, 0.1, 0.1))
    cosines = np.array([[0.99], [0.97], [0.6], [0.98]])
    assert intervals.over_rows(cosines, intervals.mean(0)).high > 1
    assert intervals.over_rows(cosines, intervals.mean(0), (-1, 1)).high == 1


def test_without_enough_parts_or_if_a_figure_hangs_on_one_there_is_no_interval():
    assert intervals.over_rows(np.array([[0.4]]), intervals.mean(0)) == (0.4, None, None)
    for table in (np.zeros((0, 2)), np.zeros((7, 2))):
        assert intervals.over_rows(table, intervals.ratio(0, 1)).to_json() == dict.fromkeys(("value", "low", "high"))
    # without the first row the ratio is 1 / 0
    assert intervals.over_rows(np.array([[1.0, 2.0], [1.0, 0.0]]), intervals.ratio(0, 1)) == (1.0, None, None)


def test_ends_of_skewed_parts_solve_halls_equation():
    values = np.random.default_rng(3).exponential(size=12)
    value, *ends = intervals.over_rows(values[:, None], intervals.mean(0))
    g = stats.skew(values)
    for end, side in zip(ends, (1, -1), strict=True):
        u = (value - end) / values.std(ddof=1)  # type: ignore[operator]
        transformed = u + g / 3 * u**2 + g**2 / 27 * u**3 + g / (6 * 12)
        assert transformed == pytest.approx(side * stats.t.ppf(0.975, 11) / math.sqrt(12))


DRAWS = {
    "normal": (lambda rng, shape: rng.normal(size=shape), 0.0),
    "skewed": (lambda rng, shape: rng.exponential(size=shape), 1.0),
    "bounded": (lambda rng, shape: rng.beta(8, 1.5, shape), 8 / 9.5),  # shares: most near 1, a few far below
}


@pytest.mark.parametrize("samples", [600, pytest.param(6000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("parts", [5, 32])
@pytest.mark.parametrize("name", DRAWS)
def test_intervals_over_parts_cover_as_the_documentation_says(name, parts, samples):
    """A bootstrap's percentiles hold 5 normal parts' mean in 0.80; the standard error of 600 samples is 0.009."""
    draw, truth = DRAWS[name]
    drawn = draw(np.random.default_rng(parts), (samples, parts, 1))
    found = [intervals.over_rows(sample, intervals.mean(0)) for sample in drawn]
    held = np.mean([low <= truth <= high for _, low, high in found])  # type: ignore[operator]
    least = 0.91 if (name, parts) == ("skewed", 5) else 0.925
    assert (0.89 if samples == 600 else least) <= held <= (1 if samples == 600 else 0.97)


def test_replicates_that_are_no_numbers_do_not_count_and_the_figure_lies_in_its_interval():
    assert intervals.percentiles(np.array([nan, 1.0, inf])) == (1.0, 1.0)
    assert np.isnan(intervals.percentiles(np.array([nan]))).all()
    assert intervals.of_replicates(0.5, np.full(9, 0.6)) == (0.5, 0.5, 0.6)
    assert intervals.of_replicates(0.7, np.full(9, 0.6)) == (0.7, 0.6, 0.7)
    assert intervals.of_replicates(0.5, np.full(9, nan)) == (0.5, None, None)


SIZES = (20, 50, 200)


def mean_of_estimates(tables, statistics):
    weights = [1 / len(tables)] * len(tables)
    (estimate,) = intervals.means_of_estimates([tables], [statistics], [CONFIDENCE], weights)
    return estimate


@pytest.mark.parametrize("count", SIZES)
def test_intervals_of_shares_cover_every_share(count):
    """Over all samples, not by simulation: how likely are those whose interval holds the share?"""
    successes = np.arange(count + 1)
    estimates = [intervals.mean_estimate(np.repeat([1.0, 0.0], [k, count - k]), (0, 1)) for k in successes]
    low, high = np.array([estimate[1:] for estimate in estimates]).T
    for share in np.arange(0.02, 0.985, 0.02):
        held = (low <= share) & (share <= high)
        assert stats.binom.pmf(successes, count, share)[held].sum() >= 0.94, share


def test_the_ends_for_shares_are_clopper_and_pearsons():
    for k in (0, 1, 17, 49, 50):
        ours = intervals.mean_estimate(np.repeat([1.0, 0.0], [k, 50 - k]), (0, 1))
        theirs = stats.binomtest(k, 50).proportion_ci(0.95, method="exact")
        assert ours[1:] == pytest.approx((theirs.low, theirs.high), abs=0.008)


@pytest.mark.slow
@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize(
    ("draw", "truth", "possible", "least"),
    [
        (lambda rng, shape: rng.poisson(1.5, shape) - 1.0 * (rng.random(shape) < 0.3), 1.2, (), 0.93),
        (lambda rng, shape: rng.binomial(1, 0.3, shape) - 1.0 * rng.binomial(1, 0.3, shape), 0.0, (-1, 1), 0.94),
        (lambda rng, shape: rng.exponential(size=shape), 1.0, (), 0.92),
        (lambda rng, shape: rng.lognormal(size=shape), np.exp(0.5), (), 0.87),
        (lambda rng, shape: 1 - 11.0 * (rng.random(shape) < 0.05), 0.45, (-10, 1), 0.94),
    ],
    ids=["snake", "difference", "skewed", "log-normal", "rare disaster"],
)
def test_intervals_of_returns_cover_their_mean(draw, truth, possible, least, count):
    samples = draw(np.random.default_rng(count), (400, count))  # binomial standard error: 1.1%
    estimates = [intervals.mean_estimate(sample, possible) for sample in samples]
    held = [one.low is not None and one.low <= truth <= one.high for one in estimates]
    assert np.mean(held) >= least


@pytest.mark.slow
def test_intervals_of_rates_and_normalised_scores_cover_the_truth():
    rng = np.random.default_rng(10)

    def invalid(count):
        return np.stack([rng.binomial(8, 0.05, count), np.full(count, 8)], axis=1).astype(float)

    def lake(count):  # on every map: won or not, and the exact values of blind and of optimal play
        optimal = rng.beta(4, 2, count)
        return np.stack([rng.random(count) < 0.5 * optimal, 0.1 * optimal, optimal], axis=1).astype(float)

    for count in SIZES:
        for draw, truth, statistic in (
            (invalid, 0.05, intervals.share(0, 1)),
            (lake, 4 / 9, intervals.normalised(0, 1, 2, (0, 1))),
        ):
            estimates = [intervals.bootstrap(draw(count), [statistic])[0] for _ in range(300)]
            assert np.mean([one.low <= truth <= one.high for one in estimates]) >= 0.93
    overall = [mean_of_estimates([lake(50), lake(50)], [statistic] * 2) for _ in range(200)]
    assert np.mean([one.low <= truth <= one.high for one in overall]) >= 0.93


def test_no_spread_is_no_certainty():
    won = intervals.mean_estimate(np.ones(50), (0, 1))
    assert (won.value, won.high) == (1.0, 1.0)
    assert won.low == pytest.approx(0.025 ** (1 / 50), abs=0.005)  # Clopper and Pearson: 0.929
    lost = intervals.mean_estimate(np.zeros(50), (0, 1))
    assert lost == pytest.approx((0.0, 0.0, 1 - won.low), abs=0.005)
    # nobody knows what else a return of 2 might have been, so nobody can say how sure it is
    assert intervals.mean_estimate(np.full(9, 2.0)) == (2.0, None, None)
    assert intervals.mean_estimate(np.array([2.0])) == (2.0, None, None)
    # nor is there a score on a scale without a span
    (estimate,) = intervals.bootstrap(np.ones((10, 3)), [intervals.normalised(0, 1, 2)])
    assert estimate.to_json() == {"value": None, "low": None, "high": None}


@pytest.mark.parametrize("blind_error", [0.0, 0.2])
def test_the_normalised_score_of_the_reference_itself_is_1_by_definition(blind_error):
    rng = np.random.default_rng(1)
    blind, reference = rng.normal(0, 1, size=50), rng.normal(3, 1, size=50)
    table = np.stack([reference, blind, reference], axis=1)
    statistic = intervals.normalised(0, 1, 2, played=True, blind_error=blind_error)
    assert intervals.bootstrap(table, [statistic]) == [(pytest.approx(1.0), None, None)]
    # somebody else who got the same as exact play could have got something else
    (estimate,) = intervals.bootstrap(table, [intervals.normalised(0, 1, 2)])
    assert estimate.low < 1.0 < estimate.high
    # and of blind play nobody's return is the definition: its end is a mean
    table = np.stack([blind, blind, reference], axis=1)
    (estimate,) = intervals.bootstrap(table, [statistic])
    assert estimate.low < 0.0 < estimate.high


@pytest.mark.slow
def test_the_standard_error_of_an_estimated_blind_end_is_in_the_interval():
    """Blind play is worth 1; each time somebody estimates that with an error thrice as large as the player's own."""
    rng = np.random.default_rng(23)
    held = {0.0: [], 0.45: []}
    for _ in range(300):
        table = np.stack([rng.normal(2, 1, 50), np.full(50, rng.normal(1, 0.45)), np.full(50, 4.0)], axis=1)
        for error, of in held.items():
            (estimate,) = intervals.bootstrap(table, [intervals.normalised(0, 1, 2, blind_error=error)])
            of.append(estimate.low <= 1 / 3 <= estimate.high)
    assert np.mean(held[0.45]) >= 0.93 > 0.8 > np.mean(held[0.0])


def test_large_tables_go_through_in_blocks_with_the_same_result(monkeypatch):
    values = np.random.default_rng(2).normal(size=700)
    whole = intervals.mean_estimate(values)
    monkeypatch.setattr(intervals, "_BLOCK", 700 * 300)  # blocks of 300 resamples, 1500 in all
    blocked = intervals.mean_estimate(values)
    assert blocked.value == whole.value
    assert blocked[1:] == pytest.approx(whole[1:], abs=0.01)


def test_the_mean_over_scenarios_weighs_each_the_same_and_resamples_each_by_itself():
    estimate = mean_of_estimates([np.full((10, 1), 1.0), np.full((1000, 1), 0.0)], [intervals.column(0, (0, 1))] * 2)
    assert estimate.value == 0.5
    assert 0.3 < estimate.low < 0.5 < estimate.high < 0.51
    # drawn in step, the mean of equal tables would have the interval of one of them
    table = np.arange(200.0)[:, None]
    one = mean_of_estimates([table], [intervals.column(0)])
    both = mean_of_estimates([table, table.copy()], [intervals.column(0)] * 2)
    assert (both.high - both.low) / (one.high - one.low) == pytest.approx(0.5**0.5, abs=0.06)
