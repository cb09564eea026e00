"""Confidence intervals that only experiments need, beside those of :mod:`agents.common.intervals`.

* a share of successes: :func:`share_of`;
* runs and episodes at once: :func:`mean_over_runs`, :func:`difference_of_means` and :func:`ratio_of_means`, a bootstrap
  or, of fewer than :data:`FEW_RUNS` runs, Student's interval over them joined with the episodes' normal one;
* few independent values: :func:`student_tests`, with Student's test and Holm's correction.
"""

from collections.abc import Collection, Mapping, Sequence
from math import hypot, inf, sqrt
from typing import NamedTuple, TypeVar

import numpy as np

from agents.common import (
    RESAMPLES,
    SEED,
    Array,
    Estimate,
    half_interval,
    is_rounding,
    mean_estimate,
    percentiles,
    student,
)
from benchmark.score import holm

Key = TypeVar("Key")

_CONFIDENCE = 0.9500042097  # of 1.96 standard errors, the rounded quantile that recorded results were made with


def share_of(successes: Sequence[float]) -> Estimate:
    """Return the share of successes, of values 0 and 1, with the score interval of Wilson (1927)."""
    from scipy.stats import binomtest

    tested = binomtest(round(sum(successes)), len(successes))
    low, high = tested.proportion_ci(_CONFIDENCE, "wilson")
    return Estimate(float(tested.statistic), float(low), float(high))


FEW_RUNS = 5
"""With fewer runs a bootstrap's percentiles hold the truth too seldom: with 2, 3, 4, 5 and 10 simulated runs in 77, 83,
86, 90 and 95%, if :func:`_over_few_runs` does in 97, 96, 96, 96 and 95%."""


def mean_over_runs(trained: Array, possible: Sequence[float] = ()) -> Estimate:
    """Return the mean of (runs, episodes) with its interval over both, or that of one agent with that over its
    episodes.

    ``possible`` are the least and the largest value that an episode of one agent can have, if they are known.
    """
    if len(trained) == 1:
        return mean_estimate(trained[0], possible)
    if len(trained) < FEW_RUNS:
        return _over_few_runs(float(trained.mean()), trained)
    means, _ = _over_runs(trained, trained[0])
    return Estimate(float(trained.mean()), *percentiles(means))


def difference_of_means(trained: Array, base: Array) -> Estimate:
    """Return the mean of several runs, (runs, episodes), minus that of one agent on the same episodes, (episodes,)."""
    if len(trained) < FEW_RUNS:
        return _over_few_runs(float(trained.mean() - base.mean()), trained - base)
    means, base_means = _over_runs(trained, base)
    return Estimate(float(trained.mean() - base.mean()), *percentiles(means - base_means))


def ratio_of_means(trained: Array, base: Array) -> Estimate:
    """Return mean of several runs over that of one agent, on the same episodes; shapes as in
    :func:`difference_of_means`.

    It has no interval where the base's mean is 0, in the sample or in a resample.
    """
    means, base_means = _over_runs(trained, base)
    if base.mean() <= 0:
        return Estimate(inf)
    value = float(trained.mean() / base.mean())
    if (base_means <= 0).any():
        return Estimate(value)
    if len(trained) < FEW_RUNS:
        return _over_few_runs(value, (trained - value * base) / base.mean())
    return Estimate(value, *percentiles(means / base_means))


def _over_few_runs(value: float, parts: Array) -> Estimate:
    """Student's interval over the runs joined with the normal one over the episodes, both of the means of ``parts``.

    Those are (runs, episodes); of a ratio its derivative. One run has no interval, since its own chance isn't known.
    """
    over_runs = student(parts.mean(axis=1))
    if over_runs.low is None:
        return Estimate(value)
    half = hypot(over_runs.value - over_runs.low, half_interval(parts.mean(axis=0)))
    return Estimate(value, value - half, value + half)


def _over_runs(trained: Array, base: Array) -> tuple[Array, Array]:
    """Means of the runs' and of the base's episodes in every resample of runs and of episodes.

    Both are drawn with replacement independently of each other, all agents on the same episodes: the pigeonhole
    bootstrap of Owen, "The pigeonhole bootstrap" (2007).
    """
    runs, episodes = trained.shape
    rng = np.random.default_rng([SEED, runs, episodes])
    run_weights = rng.multinomial(runs, np.full(runs, 1 / runs), size=RESAMPLES) / runs
    episode_weights = rng.multinomial(episodes, np.full(episodes, 1 / episodes), size=RESAMPLES) / episodes
    means: Array = np.einsum("br,re,be->b", run_weights, trained, episode_weights, optimize=True)
    base_means: Array = episode_weights @ base
    return means, base_means


def paired(own: Mapping[Key, float], other: Mapping[Key, float]) -> Array:
    """Subtract values from those of another agent, (n,), by what both have them for: seeds, runs or games."""
    return np.array([value - other[key] for key, value in own.items() if key in other])


def student_p_value(values: Array) -> float:
    """Return the two-sided p-value of Student's test that the mean is zero; 1 if nothing varies."""
    if len(values) < 2 or is_rounding(float(values.std()), float(values.mean())):
        return 1.0
    from scipy.special import stdtr

    t = float(values.mean()) / (float(values.std(ddof=1)) / sqrt(len(values)))
    return 2 * float(stdtr(len(values) - 1, -abs(t)))


class StudentTest(NamedTuple):
    """A mean over few independent values with its interval, and whether it is zero."""

    mean: Estimate
    p_value: float  # two-sided, not corrected
    p_holm: float  # corrected over all that were tested with it


def student_tests(samples: Mapping[Key, Array], references: Collection[Key] = ()) -> dict[Key, StudentTest]:
    """Samples, (n,) each, tested together; ``references``, less themselves, are none of the tests: their p is 1."""
    p_values = {key: student_p_value(own) for key, own in samples.items()}
    adjusted = holm({key: p for key, p in p_values.items() if key not in references})
    return {key: StudentTest(student(own), p_values[key], adjusted.get(key, 1.0)) for key, own in samples.items()}
