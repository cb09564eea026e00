"""Estimates with intervals: how the figures of an episode table are resampled.

Every figure of an episode table is a smooth function of column means: a mean; a ratio of two means, such as invalid
responses per response; a normalised score. So one matrix product of resampling weights and columns gives all replicates
of all of them. Equal seeds of different agents get equal weights, and the random generator is seeded by a constant: the
same episodes always give the same interval.

**The interval** is that of a Bayesian bootstrap (episodes weighted by a flat Dirichlet; Rubin 1981) with one further
episode that was not played: for the lower end it has the lowest value that is possible, for the upper end the highest.
So a sample without spread still has an interval, since the next episode may differ. For values of 0 and 1 the ends are
those of Clopper and Pearson (1934), which cover the truth at least as often as they say. For any bounded values this is
the bound of Gaffke (2005), see Learned-Miller & Thomas, "A new confidence interval for the mean of a bounded random
variable" (2019). Where nobody knows the lowest and the highest possible value, the extremes of the sample stand in, and
a sample of equal values has no interval at all: a disaster in one of twenty episodes is then missed by one in six
intervals of 20 episodes, and by one in twelve of 50.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import isfinite
from typing import NamedTuple, TypeVar

import numpy as np

from agents.common.intervals import CONFIDENCE, RESAMPLES, ROUNDING, SEED, Array, Estimate

Key = TypeVar("Key")

LEAST_RESAMPLES = 1000  # of tables with many thousand episodes, whose intervals are narrow
_SAMPLED, _SPARE = 16, 8  # every how manieth value is in the sample, and how far above its place it is cut
_SERIAL = 8192  # numbers of a matrix whose product with a vector is done by one thread, in OpenBLAS and in MKL
_BLOCK = 4_000_000  # resampling weights held at a time; 8 bytes each


class Statistic(NamedTuple):
    """A figure that is made of the means of a table's columns, and what its interval needs."""

    columns: tuple[int, ...]  # the columns of the table that it is made of
    of: Callable[[Array], Array]  # from these columns' means, shape (..., len(columns)), to the figure, shape (...)
    # from a table, shape (episodes, k), to the two further episodes, shape (k,), that bring the figure as low and as
    # high as one episode can
    further: Callable[[Array], tuple[Array, Array]]
    # standard errors of the columns' means, where these were estimated on other episodes than the table's; else empty
    errors: tuple[float, ...] = ()


def column(index: int, possible: Sequence[float] = ()) -> Statistic:
    """The mean of one column, whose values may reach ``possible`` besides the ones seen."""

    def mean(means: Array) -> Array:
        values: Array = means[..., 0]
        return values

    return Statistic((index,), mean, lambda table: _further(table, index, *_ends(table[:, index], possible)))


def ratio(numerator: int, denominator: int) -> Statistic:
    """The ratio of two columns' means, between 0 and 1 in every episode; 0 where the denominator is."""

    def quotient(means: Array) -> Array:
        shares = np.zeros(means.shape[:-1])
        np.divide(means[..., 0], means[..., 1], out=shares, where=means[..., 1] != 0)
        return shares

    return Statistic(
        (numerator, denominator),
        quotient,
        lambda table: _further(table, numerator, 0.0, float(table[:, denominator].mean())),
    )


def normalised(
    score: int,
    blind: int,
    reference: int,
    possible: Sequence[float] = (),
    *,
    played: bool = False,
    ends: tuple[float, float] | None = None,
    blind_error: float = 0.0,
) -> Statistic:
    """``(mean - blind) / (reference - blind)``; NaN where the reference isn't above blind play.

    Args:
        score, blind, reference: the columns of the returns, of the scale's 0 and of its 1.
        possible: returns that can occur besides the ones seen.
        played: whether an agent played the reference. That agent's own score is 1 by definition.
        ends: the least and the largest return of a further episode on an average board, where somebody knows better
            than the sample's extremes, which were on boards of their own.
        blind_error: the standard error of the mean of ``blind``, where that was estimated on other episodes; in every
            replicate it is then off by a normal number of that size.
    """

    def position(means: Array) -> Array:
        span = means[..., 2] - means[..., 1]
        scores = np.full(means.shape[:-1], np.nan)
        np.divide(means[..., 0] - means[..., 1], span, out=scores, where=span > 1e-12)
        return scores

    def further(table: Array) -> tuple[Array, Array]:
        if played and np.array_equal(table[:, score], table[:, reference]):
            return table.mean(axis=0), table.mean(axis=0)
        return _further(table, score, *(ends or _ends(table[:, score], possible)))

    errors = (0.0, blind_error, 0.0) if blind_error else ()
    return Statistic((score, blind, reference), position, further, errors)


def _ends(values: Array, possible: Sequence[float]) -> tuple[float, float]:
    """The least and the largest of values that were seen and of values that are possible."""
    return min([float(values.min()), *possible]), max([float(values.max()), *possible])


def _further(table: Array, index: int, lowest: float, highest: float) -> tuple[Array, Array]:
    """Two average episodes that have the lowest and the highest value in one column."""
    least = table.mean(axis=0)
    most = least.copy()
    least[index], most[index] = lowest, highest
    return least, most


def bootstrap(table: Array, statistics: Sequence[Statistic], confidence: float = CONFIDENCE) -> list[Estimate]:
    """Estimate statistics of an episode table, shape (episodes, k), with their intervals over episodes.

    There is no interval where there are fewer than two episodes, where all episodes are equal and nobody knows what
    else was possible, and where the figure is fixed by definition.
    """
    sums, rest = resampled(table)
    means = table.mean(axis=0)
    estimates = []
    for one in statistics:
        value, further = _value(means, one), one.further(table)
        if not isfinite(value) or _is_constant(table, one, further):
            estimates.append(Estimate(value))
        else:
            estimates.append(_interval(value, *replicates(one, further, sums, rest), confidence))
    return estimates


def _value(means: Array, one: Statistic) -> float:
    return float(one.of(means[list(one.columns)]))


def _is_constant(table: Array, one: Statistic, further: tuple[Array, Array]) -> bool:
    """Whether all episodes, the further ones too, are equal in what the statistic is made of: so are all resamples."""
    used = list(one.columns)
    first = table[0, used]
    return not one.errors and bool(
        (table[:, used] == first).all() and all((end[used] == first).all() for end in further)
    )


def replicates(
    one: Statistic, further: tuple[Array, Array], sums: Array, rest: Array, stream: int = 0
) -> tuple[Array, Array]:
    """The statistic in every resample, with the further episode that lowers it and with the one that raises it."""
    used = list(one.columns)
    off = _errors(one.errors, len(rest), stream) if one.errors else 0.0
    least, most = (one.of((sums[used] + rest * end[used, None] + off).T) for end in further)
    return least, most


@lru_cache(maxsize=64)
def _errors(errors: tuple[float, ...], resamples: int, stream: int) -> Array:
    """By how much the columns' means are off in every resample, shape (columns, resamples): equal for all agents."""
    drawn: Array = np.random.default_rng([SEED, stream, len(errors)]).standard_normal((len(errors), resamples))
    off: Array = drawn * np.array(errors)[:, None]
    return off


def mean_estimate(values: Array, possible: Sequence[float] = (), confidence: float = CONFIDENCE) -> Estimate:
    """The mean of one column with its interval; ``possible`` as :func:`column` takes it."""
    return bootstrap(values[:, None], [column(0, possible)], confidence)[0]


def means_of_estimates(
    tables: Sequence[Sequence[Array]],
    statistics: Sequence[Sequence[Statistic]],
    confidences: Sequence[float],
    weights: Sequence[float],
    below: Sequence[Sequence[bool]] | None = None,
) -> list[Estimate]:
    """The weighted mean of one statistic each of several independent episode tables (scenarios), with its interval.

    For many agents at once: rows of tables and of statistics are agents, whose scenarios are the same, in equal order.

    With ``below`` it is the mean of the statistics **floored at 0**, see :func:`sums_of_replicates`.
    """
    sums = sums_of_replicates(tables, statistics, weights, below)
    return [interval_of(*pair) for pair in zip(sums, confidences, strict=True)]


class Replicates(NamedTuple):
    """A figure with what it is in every resample: what its interval and its comparisons with others are made of."""

    value: float
    low: Array  # (resamples,) with the further episodes that lower it; empty where there is nothing to resample
    high: Array  # (resamples,) with those that raise it
    floor: float = -np.inf  # what the figure can't be below
    is_at_floor: bool = False  # whether that is known of it: all parts of a floored sum are below 0 beyond chance


def sums_of_replicates(
    tables: Sequence[Sequence[Array]],
    statistics: Sequence[Sequence[Statistic]],
    weights: Sequence[float],
    below: Sequence[Sequence[bool]] | None = None,
) -> list[Replicates]:
    """Resample the weighted means of :func:`means_of_estimates`. Agents with equal seeds stay paired in each resample.

    With ``below`` every scenario's estimate that is below 0 counts as 0. Replicates of the upper end have the same
    floor. At the lower end that would be wrong: the noise of a player whose scores are all 0 comes out positive where
    it is floored, and its interval would lie above 0. There a replicate counts as it is, below 0 too, except if
    ``below`` says that the scenario's score is below 0 beyond chance: that one counts as 0, which no floored score is
    less than. So the interval covers a mean of 0 as it covers any other, and its lower end is above 0 only for a player
    that is better than 0 somewhere. The sum itself is at least 0 again, as every sum of floored scores is.
    """
    floor = 0.0 if below is not None else -np.inf
    values = [
        float(np.dot(weights, [max(floor, _value(table.mean(axis=0), one)) for table, one in zip(*row, strict=True)]))
        for row in zip(tables, statistics, strict=True)
    ]
    ends: list[tuple[Array, Array] | None] = [None] * len(values)
    # Scenario by scenario, since resamples of equal size have equal weights. Each has a stream of its own: with a
    # common one, equal rows would be drawn in all scenarios at once.
    for stream, (column, ones) in enumerate(zip(zip(*tables, strict=True), zip(*statistics, strict=True), strict=True)):
        for agent, (table, one) in enumerate(zip(column, ones, strict=True)):
            if isfinite(values[agent]):
                low, high = replicates(one, one.further(table), *resampled(table, stream), stream)
                low = np.zeros_like(low) if below is not None and below[agent][stream] else low
                ends[agent] = _sum_of(ends[agent], (weights[stream] * low, weights[stream] * np.maximum(floor, high)))
    found = [Replicates(value, *(sums or (np.empty(0),) * 2)) for value, sums in zip(values, ends, strict=True)]
    return found if below is None else [_floored(*pair) for pair in zip(found, below, strict=True)]


def _floored(one: Replicates, below: Sequence[bool]) -> Replicates:
    """The replicates of a sum of floored figures, which isn't below 0, and is 0 where all of them are below it."""
    return one._replace(floor=0.0, is_at_floor=all(below))


def interval_of(one: Replicates, confidence: float = CONFIDENCE) -> Estimate:
    """Return the value with its interval over the replicates."""
    if one.is_at_floor:
        return Estimate(0.0, 0.0, 0.0)
    estimate = _interval(one.value, one.low, one.high, confidence) if len(one.low) else Estimate(one.value)
    return estimate if estimate.low is None else estimate._replace(low=max(one.floor, estimate.low))


class Difference(NamedTuple):
    """By how much the first of two figures is above the second, and how likely chance alone makes it so much."""

    estimate: Estimate
    p: float  # two-sided, not corrected; below 0.05 exactly if the interval of 95% leaves out 0
    error: float  # the standard deviation of the replicates; 0 where there are none


def difference_of(value: float, lowered: Array, raised: Array, confidence: float = CONFIDENCE) -> Difference:
    """Make the interval and the p-value of a difference of its replicates, with the further episode either way.

    Where fewer than 1% of the replicates reach 0, the tail is taken to be exponential: the chance falls from 1% as
    ``exp(-end / m)``, where ``end`` is the replicate at 1%, and ``m`` the mean of what the ones beyond it are beyond.
    The tails of Dirichlet weights fall faster in the end. So the smallest p of n pairs that all differ by as much as
    they can is about ``2 / 2^n``, like that of the sign-flip test.
    """
    finite = np.isfinite(lowered) & np.isfinite(raised)
    if not isfinite(value) or not finite.any() or finite.mean() < 0.9:
        return Difference(Estimate(value), 1.0, 0.0)
    lowered, raised = lowered[finite], raised[finite]
    p = min(1.0, 2 * min(_reaches_zero(lowered), _reaches_zero(-raised)))
    return Difference(_interval(value, lowered, raised, confidence), p, float(lowered.std() + raised.std()) / 2)


def _reaches_zero(values: Array) -> float:
    """The chance of a value of at most 0, where values are drawn as these."""
    few = len(values) // 100
    reached = np.count_nonzero(values <= ROUNDING)
    if reached > few:
        return reached / len(values)
    end = order_statistic(values, few)
    beyond = values[values < end]
    return few / len(values) * float(np.exp(-end / (end - beyond.mean()))) if len(beyond) else 1.0


def _sum_of(first: tuple[Array, Array] | None, second: tuple[Array, Array]) -> tuple[Array, Array]:
    """The sums of replicates, as many as the shorter ones are."""
    if first is None:
        return second
    shortest = min(len(first[0]), len(second[0]))
    return first[0][:shortest] + second[0][:shortest], first[1][:shortest] + second[1][:shortest]


def _interval(value: float, lowered: Array, raised: Array, confidence: float) -> Estimate:
    """The value with the ends of its interval, from the replicates with either further episode."""
    low, high = _quantile(lowered, (1 - confidence) / 2), _quantile(raised, (1 + confidence) / 2)
    if low is None or high is None or high - low <= 1e-9 * max(1.0, abs(value)):
        return Estimate(value)
    # Sums of weights are 1 but for rounding, and a share of 100% must not reach further.
    return Estimate(value, value if low > value - 1e-12 else low, value if high < value + 1e-12 else high)


def _quantile(replicates: Array, level: float) -> float | None:
    """A quantile of the replicates that are numbers; ``None`` when hardly any are."""
    finite = np.isfinite(replicates)
    numbers = replicates if finite.all() else replicates[finite]
    if len(numbers) < 0.9 * len(replicates) or not len(numbers):
        return None
    return order_statistic(numbers, round(level * (len(numbers) - 1)))


def order_statistic(values: Array, place: int) -> float:
    """``np.sort(values)[place]``, found among the few values that a sample says can be it.

    For a place near either end that takes a fifth of ``np.partition``'s time, which boards spend most of theirs in.
    """
    if place > len(values) // 2:
        return -order_statistic(-values, len(values) - 1 - place)
    sample = np.sort(values[::_SAMPLED])
    few = values[values <= sample[min(len(sample) - 1, place // _SAMPLED + _SPARE)]]
    if len(few) <= place:  # the sample lay too low
        few = values
    return float(np.partition(few, place)[place])


def resampled(table: Array, stream: int = 0, most: int = RESAMPLES) -> tuple[Array, Array]:
    """Weighted sums of the episodes in every resample, (k, resamples), and the further one's weight, (resamples,).

    With fewer than two episodes there are no resamples. Their number depends on the number of episodes alone, and on
    ``most``, which very many episodes don't keep to.
    """
    count = len(table)
    if count < 2:
        return np.empty((table.shape[1], 0)), np.empty(0)
    resamples = max(LEAST_RESAMPLES, min(RESAMPLES, 5 * _BLOCK // count))
    if resamples * count <= _BLOCK:
        weights = _weights(count, resamples, stream)[:most]
        return _weighted_sums(table, weights[:, :-1]), weights[:, -1]
    rng = np.random.default_rng([SEED, stream, count])
    rows = max(1, _BLOCK // count)
    sums, rest = [], []
    for done in range(0, resamples, rows):
        weights = _draw_weights(rng, count, min(rows, resamples - done))
        sums.append((weights[:, :-1] @ table).T)
        rest.append(weights[:, -1])
    return np.concatenate(sums, axis=1), np.concatenate(rest)


def _weighted_sums(table: Array, weights: Array) -> Array:
    """The sums of a table's columns, (k, resamples), with weights of shape (resamples, episodes).

    A board makes ten thousand small products. Handed over whole, the linear algebra library shares each of them among
    threads, which wait for each other much longer than they work; pieces of :data:`_SERIAL` numbers it does at once.
    """
    count, columns = len(table), np.ascontiguousarray(table.T)
    step = _SERIAL // count
    if step < 16:
        return columns @ weights.T
    sums = np.empty((len(columns), len(weights)))
    for start in range(0, len(weights), step):
        sums[:, start : start + step] = columns @ weights[start : start + step].T
    return sums


@lru_cache(maxsize=8)
def _weights(count: int, resamples: int, stream: int) -> Array:
    return _draw_weights(np.random.default_rng([SEED, stream, count]), count, resamples)


def _draw_weights(rng: np.random.Generator, count: int, rows: int) -> Array:
    """Flat Dirichlet weights of ``count`` episodes and a further one, shape (rows, count + 1); rows sum to 1."""
    weights: Array = rng.standard_exponential((count + 1, rows))
    weights /= weights.sum(axis=0)
    return weights.T  # so that the episodes' part is contiguous, which the matrix product would else copy
