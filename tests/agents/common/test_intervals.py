"""Intervals against those of scipy, against simulation, and as text and JSON."""

import json
import math
from math import inf, nan

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from agents.common import intervals
from agents.common.intervals import Estimate


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


def test_figures_of_equal_parts_are_their_own_interval():
    assert intervals.over_rows(np.full((7, 1), 0.1), intervals.mean(0)) == pytest.approx((0.1, 0.1, 0.1))
    undefined = intervals.over_rows(np.zeros((7, 2)), intervals.ratio(0, 1))
    assert undefined.to_json() == dict.fromkeys(("value", "low", "high"))


def test_too_few_parts_and_figures_that_hang_on_one_part_have_no_interval():
    assert intervals.over_rows(np.array([[0.4]]), intervals.mean(0)) == (0.4, None, None)
    assert not np.isfinite(intervals.over_rows(np.zeros((0, 1)), intervals.mean(0)).value)
    # without the first row the ratio is 1 / 0
    assert intervals.over_rows(np.array([[1.0, 2.0], [1.0, 0.0]]), intervals.ratio(0, 1)) == (1.0, None, None)


def test_without_skewness_the_interval_over_parts_is_students():
    values = np.array([-2.0, -0.5, 0.0, 0.5, 2.0])
    assert intervals.over_rows(values[:, None], intervals.mean(0)) == pytest.approx(intervals.student(values))


def test_ends_of_skewed_parts_solve_halls_equation():
    values = np.random.default_rng(3).exponential(size=12)
    value, *ends = intervals.over_rows(values[:, None], intervals.mean(0))
    g = stats.skew(values)
    for end, side in zip(ends, (1, -1), strict=True):
        u = (value - end) / values.std(ddof=1)  # type: ignore[operator]
        transformed = u + g / 3 * u**2 + g**2 / 27 * u**3 + g / (6 * 12)
        assert transformed == pytest.approx(side * stats.t.ppf(0.975, 11) / math.sqrt(12))


def test_no_end_lies_beyond_what_is_possible():
    cosines = np.array([[0.99], [0.97], [0.6], [0.98]])
    assert intervals.over_rows(cosines, intervals.mean(0)).high > 1  # type: ignore[operator]
    assert intervals.over_rows(cosines, intervals.mean(0), (-1, 1)).high == 1


def heaped_at_one(rng: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Shares and cosines as they often are: most near 1, a few far below."""
    return rng.beta(8, 1.5, shape)


DRAWS = {
    "normal": (lambda rng, shape: rng.normal(size=shape), 0.0),
    "skewed": (lambda rng, shape: rng.exponential(size=shape), 1.0),
    "bounded": (heaped_at_one, 8 / 9.5),
}


@pytest.mark.parametrize("samples", [600, pytest.param(6000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("parts", [5, 8, 16, 32])
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
