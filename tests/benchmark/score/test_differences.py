"""Tests of differences, their correction and sample sizes against independent computations and simulation."""

from itertools import product

import numpy as np
import pytest
from scipy import stats as scipy_stats

from benchmark.score import differences as stats


def test_the_paired_test_is_exact_for_few_pairs_and_equal_ones_are_no_evidence():
    differences = np.array([0.5, 1.0, 1.5, -0.25, 2.0])
    flips = np.array(list(product([1, -1], repeat=5)))
    extreme = np.abs((flips * differences).mean(axis=1)) >= abs(differences.mean()) - 1e-12
    for zeros in (0, 20):
        assert stats.paired_p_value(np.append(differences, np.zeros(zeros))) == pytest.approx(extreme.mean())
    assert stats.paired_p_value(np.zeros(20)) == stats.paired_p_value(np.array([0.0, 3.0, 0.0])) == 1.0
    rounding = np.full(600, 1.8e-17)  # what two optimal players may differ by on one side
    assert (stats.paired_p_value(rounding), stats.episodes_needed(rounding)) == (1.0, None)


@pytest.mark.parametrize("scale", [1.0, 0.25, 0.01])
def test_the_paired_test_is_exact_for_many_pairs_on_a_grid(scale):
    differences = np.repeat([1.0, -1.0, 0.0], [19, 7, 24])
    expected = scipy_stats.binomtest(7, 26, 0.5).pvalue  # of equal sizes, the sign-flip test is the sign test
    assert stats.paired_p_value(scale * differences) == pytest.approx(expected, rel=1e-9)
    mixed = np.repeat([1.0, -1.0, 2.0, -3.0], [8, 3, 5, 2])  # 18 pairs: 2^18 signs
    sums = np.zeros(1)
    for size in mixed:
        sums = np.concatenate([sums + size, sums - size])
    assert stats.paired_p_value(scale * mixed) == pytest.approx(np.mean(np.abs(sums) >= abs(mixed.sum())), rel=1e-9)


@pytest.mark.slow
def test_a_disaster_among_small_differences_takes_none_of_their_evidence():
    """With fifty pairs of 1 the sum with one of 1,000 is as extreme as all signs equal; so it is with many others."""
    assert stats.paired_p_value(np.append(np.ones(50), 1000.0)) == pytest.approx(2 * 0.5**51, rel=1e-9)
    differences = np.append(np.random.default_rng(0).normal(0.5, 1.0, 40), 600.0)
    signs = np.random.default_rng(1).choice([-1.0, 1.0], (50_000, 41))
    drawn = np.mean(np.abs(signs @ differences) >= abs(differences.sum()))
    assert stats.paired_p_value(differences) == pytest.approx(drawn, rel=0.25)


def test_above_the_limit_the_normal_distribution_takes_over_and_agrees(monkeypatch):
    differences = np.random.default_rng(6).normal(0.05, 1, size=900)
    exact = stats.paired_p_value(differences)
    monkeypatch.setattr(stats, "EXACT_LIMIT", 100)
    assert stats.paired_p_value(differences) == pytest.approx(exact, abs=0.002)


def test_holm_by_hand():
    assert stats.holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06})
    assert stats.holm({"a": 0.5, "b": 0.9}) == {"a": 1.0, "b": 1.0}
    assert stats.holm({}) == {}
    # comparisons that were not made count in the family
    assert stats.holm({0: 0.001, 2: 0.03}, family=5) == pytest.approx({0: 5 * 0.001, 2: 4 * 0.03})


def of_shares(better, worse=0.0):
    return np.repeat([1.0, -1.0, 0.0], [round(100 * share) for share in (better, worse, 1 - better - worse)])


@pytest.mark.parametrize(
    ("pilot", "level"),
    [
        (of_shares(1.0), 0.05),
        (of_shares(0.3), 0.05),
        (np.random.default_rng(8).normal(0.5, 1, 400), 0.05),
        (of_shares(0.5, 0.2), 0.05 / 66),
    ],
)
def test_with_the_number_of_episodes_the_paired_test_has_the_power_that_is_promised(pilot, level):
    rng = np.random.default_rng(8)
    needed = stats.episodes_needed(pilot, level).value
    shown = [stats.paired_p_value(rng.choice(pilot, needed)) <= level for _ in range(300)]
    assert np.mean(shown) > 0.74
    fewer = [stats.paired_p_value(rng.choice(pilot, needed * 2 // 3)) <= level for _ in range(300)]
    assert np.mean(fewer) < 0.8
    fewest = stats.fewest_pairs(level)
    assert stats.paired_p_value(np.ones(fewest)) < level <= stats.paired_p_value(np.ones(fewest - 1))


def test_no_number_of_episodes_shows_no_difference():
    assert stats.episodes_needed(np.array([1.0, -1.0])) is None
    assert stats.episodes_needed(np.array([1.0])) is None
    assert stats.episodes_needed(np.full(10, 0.5))[:2] == (6, 6)  # with five equal signs p is 2/32


@pytest.mark.parametrize("tenths", [[1, 2, -3] * 10, [10**9, 1 - 10**9], [1, 2, -3, 1], [3] * 9 + [-1], [0, 0, 40]])
@pytest.mark.parametrize(("unit", "level"), [(0.1, 0.05), (1 / 3, 0.05 / 66), (1e-6, 1e-9)])
def test_any_decimals_have_a_number_of_episodes_or_none(tenths, unit, level):
    needed = stats.episodes_needed(np.array([unit * value for value in tenths]), level)
    if sum(tenths) == 0:
        assert needed is None
    if needed is not None:
        assert stats.fewest_pairs(level) <= needed.low <= needed.value <= stats.MOST_NEEDED + 1
        assert needed.high is None or needed.value <= needed.high


def test_the_number_of_episodes_knows_how_little_is_known_of_it():
    rng = np.random.default_rng(6)
    held, open_ended = [], 0
    level, power = scipy_stats.norm.ppf([0.975, 0.8])
    truth = ((level * np.sqrt(0.3**2 + 1) + power) / 0.3) ** 2
    for _ in range(40):
        needed = stats.episodes_needed(rng.normal(0.3, 1, 50))
        held.append(needed.low <= truth <= (needed.high or np.inf))
        open_ended += needed.high is None
    assert np.mean(held) > 0.9
    assert 0.2 < open_ended / 40 < 0.8  # a difference of 2.1 standard errors may be none in half of the samples


def test_intervals_that_meet_but_for_rounding_are_not_apart():
    def figure(low, high):
        return {"value": 0.5, "low": low, "high": high}

    assert stats.any_disjoint([figure(0.1, 0.2)], [figure(0.3, 0.6)])
    assert stats.any_disjoint([None, figure(0.3, 0.6)], [figure(0.0, 1.0), figure(0.1, 0.2)])
    assert not stats.any_disjoint([figure(0.1, 0.1 + 0.2)], [figure(0.3 + 1e-12, 0.6)])
    assert not stats.any_disjoint([figure(None, None)], [figure(0.3, 0.6)])


def test_the_pairs_of_a_plan_show_the_difference_in_four_of_five_runs():
    rng, level = np.random.default_rng(1), 0.05 / 5
    for size, deviation in ((0.3, 0.8), (0.1, 0.2)):
        needed = stats.pairs_to_detect(size, deviation**2, 4, level)
        assert needed.low < needed.value < needed.high
        p_values = [stats.paired_p_value(rng.normal(size, deviation, needed.value)) for _ in range(300)]
        assert np.mean(np.array(p_values) < level) == pytest.approx(0.8, abs=0.06)
        assert stats.power_of(needed.value, size, deviation**2, level) == pytest.approx(0.8, abs=0.02)
        half = [stats.paired_p_value(rng.normal(size, deviation, needed.value // 2)) for _ in range(300)]
        told = stats.power_of(needed.value // 2, size, deviation**2, level)
        assert np.mean(np.array(half) < level) == pytest.approx(told, abs=0.08)
    assert stats.pairs_to_detect(0.1, 0.0, 4, level) is None
    assert stats.power_of(stats.fewest_pairs(level) - 1, 5.0, 0.01, level) == 0
