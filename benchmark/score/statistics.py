"""Estimates with intervals, paired tests, and how many episodes it takes to tell two agents apart.

Every statistic of an episode table here is a smooth function of column means (a mean; a ratio of two means such as
invalid responses per response; a normalised score), so one matrix product of resampling weights and columns gives
all bootstrap replicates of all of them at once. Equal seeds of different agents get equal weights, and the random
generator is seeded by a constant: the same episodes always give the same interval.

Sources: Efron & Tibshirani, "An Introduction to the Bootstrap" (1993), sections 13.3 (percentile) and 14.3 (BCa);
Holm, "A simple sequentially rejective multiple test procedure" (1979).
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import ceil, isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CONFIDENCE = 0.95
RESAMPLES = 4000
"""Monte Carlo error of an interval's end at this number: about 0.05 standard errors of the estimate."""

LEAST_RESAMPLES = 1000
"""Of tables with many thousand episodes, whose intervals are narrow."""

SEED = 20250810
PERMUTATIONS = 9999
PERMUTATION_LIMIT = 1000
"""Above this many pairs the sign-flip distribution is normal to all printed digits, and the t test is used."""

_BLOCK = 4_000_000
"""Resampling weights held at a time; 8 bytes each."""


class Estimate(NamedTuple):
    """A figure with its 95% interval; the ends are ``None`` where there are fewer than two episodes."""

    value: float
    low: float | None
    high: float | None


Statistic = Callable[[Array], Array]
"""From column means, shape (..., k), to the statistic, shape (...)."""


def column(index: int) -> Statistic:
    """The mean of one column."""

    def statistic(means: Array) -> Array:
        values: Array = means[..., index]
        return values

    return statistic


def ratio(numerator: int, denominator: int) -> Statistic:
    """The ratio of two columns' means; 0 where the denominator is."""

    def statistic(means: Array) -> Array:
        quotient = np.zeros(means.shape[:-1])
        np.divide(means[..., numerator], means[..., denominator], out=quotient, where=means[..., denominator] != 0)
        return quotient

    return statistic


def normalised(score: int, random: int, optimal: int) -> Statistic:
    """``(mean - random) / (optimal - random)``; NaN where optimal isn't above random."""

    def statistic(means: Array) -> Array:
        span = means[..., optimal] - means[..., random]
        quotient = np.full(means.shape[:-1], np.nan)
        np.divide(means[..., score] - means[..., random], span, out=quotient, where=span > 1e-12)
        return quotient

    return statistic


def bootstrap(columns: Array, statistics: Sequence[Statistic]) -> list[Estimate]:
    """Estimate statistics of an episode table with their bootstrap intervals over episodes.

    The interval is BCa (bias-corrected and accelerated); where the replicates or the jackknife have no spread, or are
    too few to correct by, it is the percentile interval.

    Args:
        columns: shape (episodes, k).
        statistics: functions of the column means.

    Returns:
        One estimate per statistic; NaN values become an interval without ends.
    """
    count = len(columns)
    means = columns.mean(axis=0)
    values = [float(statistic(means)) for statistic in statistics]
    if count < 2:
        return [Estimate(value, None, None) for value in values]
    replicates = _resampled_means(columns)
    left_out = (columns.sum(axis=0) - columns) / (count - 1)
    return [
        Estimate(value, *_bca_interval(value, statistic(replicates), statistic(left_out)))
        for value, statistic in zip(values, statistics, strict=True)
    ]


def mean_estimate(values: Array) -> Estimate:
    """The mean of one column with its bootstrap interval."""
    return bootstrap(values[:, None], [column(0)])[0]


def success_estimate(successes: Array, estimate: Estimate) -> Estimate:
    """A share of episodes, given its bootstrap estimate.

    With all successes or none the bootstrap has no spread and would claim certainty, so there the interval is
    Wilson's score interval (Wilson 1927).
    """
    if len(successes) >= 2 and successes.min() == successes.max():
        from scipy.stats import binomtest

        interval = binomtest(int(successes.sum()), len(successes)).proportion_ci(CONFIDENCE, method="wilson")
        return Estimate(estimate.value, float(interval.low), float(interval.high))
    return estimate


def mean_of_estimates(tables: Sequence[Array], statistics: Sequence[Statistic]) -> Estimate:
    """The plain mean of one statistic each of several independent tables (scenarios), with its percentile interval.

    Args:
        tables: one episode table per scenario; their numbers of episodes may differ.
        statistics: the statistic of each table.
    """
    value = float(np.mean([statistic(t.mean(axis=0)) for t, statistic in zip(tables, statistics, strict=True)]))
    if any(len(table) < 2 for table in tables):
        return Estimate(value, None, None)
    # A scenario's own stream: with a common one, equal rows would be drawn in all scenarios at once.
    each = [
        statistic(_resampled_means(table, stream))
        for stream, (table, statistic) in enumerate(zip(tables, statistics, strict=True))
    ]
    shortest = min(map(len, each))
    replicates = np.mean([values[:shortest] for values in each], axis=0)
    return Estimate(value, *_quantiles(replicates, (1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2))


def _resampled_means(columns: Array, stream: int = 0) -> Array:
    """Column means of every resample, shape (number of resamples, k); the number depends on the episodes' alone."""
    count = len(columns)
    resamples = max(LEAST_RESAMPLES, min(RESAMPLES, 5 * _BLOCK // count))
    if resamples * count <= _BLOCK:
        return _weights(count, resamples, stream) @ columns
    rng = np.random.default_rng([SEED, stream, count])
    rows = max(1, _BLOCK // count)
    blocks = [_draw_weights(rng, count, min(rows, resamples - done)) @ columns for done in range(0, resamples, rows)]
    return np.concatenate(blocks)


@lru_cache(maxsize=8)
def _weights(count: int, resamples: int, stream: int) -> Array:
    """The resampling weights of ``count`` episodes, shape (resamples, count); rows sum to 1."""
    return _draw_weights(np.random.default_rng([SEED, stream, count]), count, resamples)


def _draw_weights(rng: np.random.Generator, count: int, rows: int) -> Array:
    """How often each episode is drawn in each resample, as a share."""
    drawn = rng.integers(count, size=(rows, count)) + np.arange(rows)[:, None] * count
    return np.bincount(drawn.ravel(), minlength=rows * count).reshape(rows, count) / count


def _bca_interval(value: float, replicates: Array, left_out: Array) -> tuple[float | None, float | None]:
    """The BCa interval's ends (Efron & Tibshirani, equations 14.9, 14.14, 14.15)."""
    from scipy.special import ndtr, ndtri

    levels = np.array([(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    if not isfinite(value):
        return None, None
    # Ties with the value count half, or a coarse statistic (few episodes) looks biased.
    bias = float(ndtri((np.mean(replicates < value) + np.mean(replicates <= value)) / 2))
    deviations = left_out.mean() - left_out
    spread = float((deviations**2).sum())
    if isfinite(bias) and spread > 1e-20:  # else all but constant, and the skewness is rounding noise
        acceleration = float((deviations**3).sum()) / (6 * spread**1.5)
        z = bias + ndtri(levels)
        levels = ndtr(bias + z / (1 - acceleration * z))
    return _quantiles(replicates, float(levels[0]), float(levels[1]))


def _quantiles(replicates: Array, low: float, high: float) -> tuple[float | None, float | None]:
    """Two quantiles of the replicates that are numbers; ``None`` when hardly any are."""
    finite = replicates[np.isfinite(replicates)]
    if len(finite) < 0.9 * len(replicates):
        return None, None
    ends = np.quantile(finite, [low, high])
    return float(ends[0]), float(ends[1])


def paired_p_value(differences: Array) -> float:
    """Two-sided p-value of "no difference" for paired values: a sign-flip permutation test (scipy).

    Up to :data:`PERMUTATION_LIMIT` pairs by permutation (exact when the signs can be enumerated), above it by the t
    test that it converges to.

    Args:
        differences: shape (pairs,).
    """
    unequal = differences[differences != 0]  # a zero stays zero whatever its sign: it changes no permutation
    if len(unequal) < 2:  # with one, both signs are as extreme
        return 1.0
    from scipy import stats

    if len(unequal) > PERMUTATION_LIMIT:
        return float(stats.ttest_1samp(differences, 0.0).pvalue)
    result = stats.permutation_test(
        (unequal, np.zeros_like(unequal)),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=PERMUTATIONS,
        batch=1000,
        rng=np.random.default_rng(SEED),
    )
    return min(1.0, float(result.pvalue))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: adjusted p-values, in the given order."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [1.0] * len(p_values)
    running = 0.0
    for place, index in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - place) * p_values[index]))
        adjusted[index] = running
    return adjusted


def episodes_needed(differences: Array, power: float = 0.8, level: float = 0.05) -> int | None:
    """Pairs of episodes that show a difference as large as the observed one with this power (two-sided z test).

    ``n = ((z_{1 - level/2} + z_power) * sd / mean)^2``. ``None`` where the observed difference is 0.
    """
    if len(differences) < 2:
        return None
    mean, deviation = float(differences.mean()), float(differences.std(ddof=1))
    if mean == 0:
        return None
    from scipy.special import ndtri

    z = float(ndtri(1 - level / 2) + ndtri(power))
    return max(2, ceil((z * deviation / mean) ** 2))
