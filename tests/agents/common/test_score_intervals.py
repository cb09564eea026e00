"""Intervals against independent computations and against simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from agents.common import intervals as stats
from agents.common.intervals import CONFIDENCE

SIZES = (20, 50, 200)


def mean_of_estimates(tables, statistics):
    weights = [1 / len(tables)] * len(tables)
    (estimate,) = stats.means_of_estimates([tables], [statistics], [CONFIDENCE], weights)
    return estimate


@pytest.mark.parametrize("count", SIZES)
def test_intervals_of_shares_cover_every_share(count):
    """Over all samples, not by simulation: how likely are those whose interval holds the share?"""
    successes = np.arange(count + 1)
    estimates = [stats.mean_estimate(np.repeat([1.0, 0.0], [k, count - k]), (0, 1)) for k in successes]
    low, high = np.array([estimate[1:] for estimate in estimates]).T
    for share in np.arange(0.02, 0.985, 0.02):
        held = (low <= share) & (share <= high)
        assert scipy_stats.binom.pmf(successes, count, share)[held].sum() >= 0.94, share


def test_the_ends_for_shares_are_clopper_and_pearsons():
    for k in (0, 1, 17, 49, 50):
        ours = stats.mean_estimate(np.repeat([1.0, 0.0], [k, 50 - k]), (0, 1))
        theirs = scipy_stats.binomtest(k, 50).proportion_ci(0.95, method="exact")
        assert ours[1:] == pytest.approx((theirs.low, theirs.high), abs=0.008)


def snake_like(rng, shape):
    """Returns as Snake has them: apples, now and then a death."""
    return rng.poisson(1.5, shape) - (rng.random(shape) < 0.3).astype(float)


def slippery_difference(rng, shape):
    """Paired differences of two agents that win 30% each."""
    return (rng.random(shape) < 0.3).astype(float) - (rng.random(shape) < 0.3)


@pytest.mark.slow
@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize(
    ("draw", "truth", "possible", "least"),
    [
        (snake_like, 1.2, (), 0.93),
        (slippery_difference, 0.0, (-1, 1), 0.94),
        (lambda rng, shape: snake_like(rng, shape) - snake_like(rng, shape), 0.0, (), 0.93),
        (lambda rng, shape: rng.normal(size=shape), 0.0, (), 0.93),
        (lambda rng, shape: rng.exponential(size=shape), 1.0, (), 0.92),
        (lambda rng, shape: rng.lognormal(size=shape), np.exp(0.5), (), 0.87),
        (lambda rng, shape: 2 - 3.0 * (rng.random(shape) < 0.05), 1.85, (-1, 2), 0.94),
        (lambda rng, shape: 1 - 11.0 * (rng.random(shape) < 0.05), 0.45, (-10, 1), 0.94),
    ],
    ids=["snake", "difference", "snakes' difference", "normal", "skewed", "log-normal", "rare death", "rare disaster"],
)
def test_intervals_of_returns_cover_their_mean(draw, truth, possible, least, count):
    samples = draw(np.random.default_rng(count), (400, count))  # binomial standard error: 1.1%
    estimates = [stats.mean_estimate(sample, possible) for sample in samples]
    held = [one.low is not None and one.low <= truth <= one.high for one in estimates]
    assert np.mean(held) >= least


@pytest.mark.slow
def test_a_rare_disaster_is_missed_where_nobody_knows_that_it_can_happen():
    """What docs/research/scores.md says of games without stated bounds: one episode in twenty loses ten."""
    held = {}
    for count in SIZES:
        rng = np.random.default_rng(count)
        samples = rng.normal(size=(600, count)) - 10 * (rng.random((600, count)) < 0.05)
        estimates = [stats.mean_estimate(sample) for sample in samples]
        held[count] = np.mean([one.low <= -0.5 <= one.high for one in estimates])
    assert held[20] == pytest.approx(0.82, abs=0.05)
    assert held[50] == pytest.approx(0.92, abs=0.04)
    assert held[200] >= 0.94


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
            (invalid, 0.05, stats.share(0, 1)),
            (lake, 4 / 9, stats.normalised(0, 1, 2, (0, 1))),
        ):
            estimates = [stats.bootstrap(draw(count), [statistic])[0] for _ in range(300)]
            assert np.mean([one.low <= truth <= one.high for one in estimates]) >= 0.93
    overall = [mean_of_estimates([lake(50), lake(50)], [statistic] * 2) for _ in range(200)]
    assert np.mean([one.low <= truth <= one.high for one in overall]) >= 0.93


def test_no_spread_is_no_certainty():
    won = stats.mean_estimate(np.ones(50), (0, 1))
    assert (won.value, won.high) == (1.0, 1.0)
    assert won.low == pytest.approx(0.025 ** (1 / 50), abs=0.005)  # Clopper and Pearson: 0.929
    lost = stats.mean_estimate(np.zeros(50), (0, 1))
    assert lost == pytest.approx((0.0, 0.0, 1 - won.low), abs=0.005)
    # nobody knows what else a return of 2 might have been, so nobody can say how sure it is
    assert stats.mean_estimate(np.full(9, 2.0)) == (2.0, None, None)
    assert stats.mean_estimate(np.array([2.0])) == (2.0, None, None)


def test_a_scale_without_a_span_gives_no_normalised_score():
    table = np.ones((10, 3))
    (estimate,) = stats.bootstrap(table, [stats.normalised(0, 1, 2)])
    assert np.isnan(estimate.value)
    assert estimate[1:] == (None, None)


@pytest.mark.parametrize("blind_error", [0.0, 0.2])
def test_the_normalised_score_of_the_reference_itself_is_1_by_definition(blind_error):
    rng = np.random.default_rng(1)
    blind, reference = rng.normal(0, 1, size=50), rng.normal(3, 1, size=50)
    table = np.stack([reference, blind, reference], axis=1)
    statistic = stats.normalised(0, 1, 2, played=True, blind_error=blind_error)
    assert stats.bootstrap(table, [statistic]) == [(pytest.approx(1.0), None, None)]
    # somebody else who got the same as exact play could have got something else
    (estimate,) = stats.bootstrap(table, [stats.normalised(0, 1, 2)])
    assert estimate.low < 1.0 < estimate.high
    # and of blind play nobody's return is the definition: its end is a mean
    table = np.stack([blind, blind, reference], axis=1)
    (estimate,) = stats.bootstrap(table, [statistic])
    assert estimate.low < 0.0 < estimate.high


@pytest.mark.slow
def test_the_standard_error_of_an_estimated_blind_end_is_in_the_interval():
    """Blind play is worth 1; each time somebody estimates that with an error thrice as large as the player's own."""
    rng = np.random.default_rng(23)
    held = {0.0: [], 0.45: []}
    for _ in range(300):
        table = np.stack([rng.normal(2, 1, 50), np.full(50, rng.normal(1, 0.45)), np.full(50, 4.0)], axis=1)
        for error, of in held.items():
            (estimate,) = stats.bootstrap(table, [stats.normalised(0, 1, 2, blind_error=error)])
            of.append(estimate.low <= 1 / 3 <= estimate.high)
    assert np.mean(held[0.45]) >= 0.93 > 0.8 > np.mean(held[0.0])


def test_large_tables_go_through_in_blocks_with_the_same_result(monkeypatch):
    values = np.random.default_rng(2).normal(size=700)
    whole = stats.mean_estimate(values)
    monkeypatch.setattr(stats, "_BLOCK", 700 * 300)  # blocks of 300 resamples, 1500 in all
    blocked = stats.mean_estimate(values)
    assert blocked.value == whole.value
    assert blocked[1:] == pytest.approx(whole[1:], abs=0.01)


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=40))
@settings(max_examples=60, deadline=None)
def test_an_interval_holds_its_mean_and_stays_within_the_data(values):
    estimate = stats.mean_estimate(np.array(values))
    if max(values) - min(values) > 1e-6:
        assert min(values) - 1e-9 <= estimate.low <= estimate.value <= estimate.high <= max(values) + 1e-9


def test_the_mean_over_scenarios_weighs_each_the_same():
    tables = [np.full((10, 1), 1.0), np.full((1000, 1), 0.0)]
    assert mean_of_estimates(tables, [stats.column(0)] * 2) == (0.5, None, None)
    estimate = mean_of_estimates(tables, [stats.column(0, (0, 1))] * 2)
    assert estimate.value == 0.5
    assert 0.3 < estimate.low < 0.5 < estimate.high < 0.51


def test_equal_tables_of_two_scenarios_are_resampled_apart():
    """Drawn in step, their mean would have the interval of one of them."""
    table = np.arange(200.0)[:, None]
    one = mean_of_estimates([table], [stats.column(0)])
    both = mean_of_estimates([table, table.copy()], [stats.column(0)] * 2)
    assert (both.high - both.low) / (one.high - one.low) == pytest.approx(0.5**0.5, abs=0.06)
