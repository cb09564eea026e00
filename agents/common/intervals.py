"""Confidence intervals: the record of a figure with its interval, and all ways to find its ends, 95% by default.

What varies decides which way it is:

* one mean over few independent runs, seeds or games: :func:`student`;
* a mean over many values, those of one episode together: :func:`half_interval`, which is normal;
* any function of means over few independent parts, such as batches: :func:`over_rows`, :func:`over_parts`;
* scores of a leaderboard, whose next episode may be like none before: :func:`bootstrap`, :func:`mean_estimate`.

**Scores** are smooth functions of column means, so one matrix product of resampling weights and columns gives all
replicates of all of them. Equal seeds of different agents get equal weights. The interval is that of a Bayesian
bootstrap (episodes weighted by a flat Dirichlet; Rubin 1981) with one further episode that was not played: for the
lower end it has the lowest possible value, for the upper end the highest. For values of 0 and 1 the ends are those of
Clopper and Pearson (1934); for any bounded values this is the bound of Gaffke (2005), see Learned-Miller & Thomas
(2019). If the possible values are unknown, the extremes of the sample stand in, and a sample of equal values has no
interval. Every generator is seeded by a constant: equal data have equal intervals.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import inf, isfinite, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Range = tuple[float, float]

CONFIDENCE = 0.95
LEVELS = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)

RESAMPLES = 4000  # Monte Carlo error of an interval's end at this number: about 0.05 standard errors of the estimate
SEED = 20250810
ANYWHERE: Range = (-inf, inf)
ROUNDING = 1e-9  # what a figure near 0 or 1 may be off by for no other reason than how its parts were added
LEAST_RESAMPLES = 1000  # of tables with many thousand episodes, whose intervals are narrow
_SERIAL = 8192  # numbers of a matrix whose product with a vector is done by one thread, in OpenBLAS and in MKL
_BLOCK = 4_000_000  # resampling weights held at a time; 8 bytes each
_Z = 1.96  # the normal distribution's quantile of LEVELS[1], as rounded as recorded results have it


class Estimate(NamedTuple):
    """A figure with its 95% interval; ends are ``None`` if there is none, ``value`` is NaN if undefined."""

    value: float
    low: float | None = None
    high: float | None = None

    def __format__(self, form: str) -> str:
        """Format ``f"{estimate:.3f}"`` as ``0.512 [0.470, 0.555]``, ``0.512`` without interval, ``-`` without value."""
        if not form:
            return str(self)
        if not isfinite(self.value):
            return "-"
        interval = "" if self.low is None or self.high is None else f" [{self.low:{form}}, {self.high:{form}}]"
        return f"{self.value:{form}}{interval}"

    def to_json(self) -> dict[str, float | None]:
        """Return ``{"value", "low", "high"}``, without NaN and infinity, which JSON doesn't have."""
        return {name: end if end is not None and isfinite(end) else None for name, end in self._asdict().items()}


def percentiles(replicates: Array) -> tuple[float, float]:
    """Return the ends that leave out 2.5% of a figure's finite replicates on either side; NaN if there are none."""
    numbers = replicates[np.isfinite(replicates)]
    low, high = np.quantile(numbers, LEVELS) if len(numbers) else (nan, nan)
    return float(low), float(high)


def of_replicates(value: float, replicates: Array) -> Estimate:
    """Return a figure with the percentiles of its replicates, which reach as far as the figure itself."""
    if not isfinite(value):
        return Estimate(nan)
    low, high = percentiles(replicates)
    return Estimate(value) if low != low else Estimate(value, min(low, value), max(high, value))


def over_rows(table: Array, of: Callable[[Array], Array], within: Range = ANYWHERE) -> Estimate:
    """Estimate a function of a table's column means, (..., columns) -> (...), over its independent rows."""
    return over_parts(lambda weights: of(weights @ table), len(table), within)


def over_parts(of: Callable[[Array], Array], parts: int, within: Range = ANYWHERE) -> Estimate:
    """Estimate a figure of independent parts with its interval, from what it is without each of them.

    The jackknife's pseudo-values ``n f - (n - 1) f_(without i)`` have a mean, a standard deviation s and a skewness g.
    With ``U = (mean - truth) / s`` the transformation ``U + (g / 3) U^2 + (g^2 / 27) U^3 + g / (6 n)`` has no skewness
    to the order of 1 / n (Hall 1992, "On the removal of skewness by transformation"); Student's quantiles over the root
    of n are its ends, and are transformed back. With 5, 8, 16 and 32 parts that covers 95, 95, 94 and 95% of normal
    values, and 92, 93, 94 and 95% of exponential ones.

    ``of`` takes weights of the parts, shape (..., parts), whose last axis sums to 1, and gives shape (...). No end
    reaches beyond ``within``. A figure of fewer than two parts, or undefined without some part, has no interval.
    """
    if not parts:
        return Estimate(nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(of(np.full(parts, 1 / parts)))
        without = of(without_each(parts)) if parts > 1 else np.empty(0)
    if not isfinite(value) or parts < 2 or not np.isfinite(without).all():
        return Estimate(value if isfinite(value) else nan)
    pseudo = parts * value - (parts - 1) * without
    spread = float(pseudo.std(ddof=1))
    if is_rounding(spread, value):
        return Estimate(value, max(within[0], value), min(within[1], value))
    skewness = float(np.mean((pseudo - pseudo.mean()) ** 3) / pseudo.std() ** 3)
    a = skewness / 3

    def end(side: float) -> float:
        """Solve ``U + a U^2 + a^2 U^3 / 3 = y`` for U."""
        y = side - skewness / (6 * parts)
        return value - spread * (y if abs(a) < 1e-9 else float(np.cbrt(1 + 3 * a * y) - 1) / a)

    reach = float(student_quantile(parts - 1)) / sqrt(parts)
    return Estimate(value, max(within[0], min(end(reach), value)), min(within[1], max(end(-reach), value)))


def without_each(parts: int) -> Array:
    """Return equal weights of all parts but one, (parts, parts): a row for each left out."""
    return (1 - np.eye(parts)) / (parts - 1)


def is_above(value: float, bound: float = 0.0) -> bool:
    """Return whether a figure is above a bound by more than rounding: a score of 1.39e-16 isn't above 0."""
    return value - bound > ROUNDING


def is_rounding(spread: float, value: float) -> bool:
    """Return whether what varies by ``spread`` around ``value`` varies in its last bits alone."""
    return spread <= 1e-12 * max(1.0, abs(value))


def mean(column: int) -> Callable[[Array], Array]:
    """Take the mean of one column."""
    return lambda means: means[..., column]


def ratio(numerator: int, denominator: int) -> Callable[[Array], Array]:
    """Take the ratio of two columns' means."""
    return lambda means: means[..., numerator] / means[..., denominator]


def student(values: Sequence[float] | Array) -> Estimate:
    """Return the mean with Student's interval, which has no ends for fewer than two values; NaN of none."""
    if len(values) < 2:
        return Estimate(float(values[0]) if len(values) else nan)
    value = float(np.mean(values))
    half = float(student_quantile(len(values) - 1)) * float(np.std(values, ddof=1)) / sqrt(len(values))
    return Estimate(value, value - half, value + half)


def student_quantile(freedom: Any, confidence: float = CONFIDENCE) -> Any:
    """Return how many standard errors a two-sided interval of Student's reaches, by its degrees of freedom."""
    from scipy.special import stdtrit

    return stdtrit(freedom, (1 + confidence) / 2)


def half_interval(values: Sequence[float] | Array, episodes: Sequence[int] | None = None) -> float:
    """Return half the normal interval of the mean of ``values``; those of one of ``episodes`` count together."""
    _, episode = np.unique(range(len(values)) if episodes is None else episodes, return_inverse=True)
    sums = np.bincount(episode, weights=np.asarray(values) - np.mean(values))
    n = len(sums)
    return float(_Z * np.sqrt((sums**2).sum() * n / (n - 1)) / len(values)) if n > 1 else nan


class Statistic(NamedTuple):
    """A figure that is made of the means of a table's columns, and what its interval needs."""

    columns: tuple[int, ...]  # the columns of the table that it is made of
    of: Callable[[Array], Array]  # from these columns' means, shape (..., len(columns)), to the figure, shape (...)
    further: Callable[[Array], tuple[Array, Array]]  # from a table to the episodes, (k,), that lower and raise it most
    errors: tuple[float, ...] = ()  # standard errors of the columns' means, if they come from other episodes


def column(index: int, possible: Sequence[float] = ()) -> Statistic:
    """Take the mean of one column, whose values may reach ``possible`` besides the ones seen."""
    return Statistic((index,), mean(0), lambda table: _further(table, index, *_ends(table[:, index], possible)))


def share(numerator: int, denominator: int) -> Statistic:
    """Take the ratio of two columns' means, between 0 and 1 in every episode; 0 if the denominator is."""

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
    """Take ``(mean - blind) / (reference - blind)``, which is NaN unless the reference is above blind play.

    ``score``, ``blind`` and ``reference`` are columns; ``possible`` are returns besides the ones seen, and ``ends``
    those of a further episode on an average board, if known. An agent that ``played`` the reference has a score of 1 by
    definition. ``blind_error`` is the standard error of ``blind``, if that was estimated on other episodes.
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
    return min([float(values.min()), *possible]), max([float(values.max()), *possible])


def _further(table: Array, index: int, lowest: float, highest: float) -> tuple[Array, Array]:
    """Return two average episodes that have the lowest and the highest value in one column."""
    least = table.mean(axis=0)
    most = least.copy()
    least[index], most[index] = lowest, highest
    return least, most


def bootstrap(table: Array, statistics: Sequence[Statistic], confidence: float = CONFIDENCE) -> list[Estimate]:
    """Estimate statistics of an episode table, shape (episodes, k), with intervals over episodes that differ."""
    sums, rest = resampled(table)
    means = table.mean(axis=0)
    estimates = []
    for one in statistics:
        value, further, used = _value(means, one), one.further(table), list(one.columns)
        first = table[0, used]
        # if all episodes and the further ones are equal in what the statistic needs, so are all resamples
        constant = not one.errors and (table[:, used] == first).all() and all((e[used] == first).all() for e in further)
        if not isfinite(value) or constant:
            estimates.append(Estimate(value))
        else:
            estimates.append(_interval(value, *replicates(one, further, sums, rest), confidence))
    return estimates


def _value(means: Array, one: Statistic) -> float:
    return float(one.of(means[list(one.columns)]))


def replicates(
    one: Statistic, further: tuple[Array, Array], sums: Array, rest: Array, stream: int = 0
) -> tuple[Array, Array]:
    """Return the statistic in every resample, with the further episode that lowers it and the one that raises it."""
    used = list(one.columns)
    off = _errors(one.errors, len(rest), stream) if one.errors else 0.0
    least, most = (one.of((sums[used] + rest * end[used, None] + off).T) for end in further)
    return least, most


@lru_cache(maxsize=64)
def _errors(errors: tuple[float, ...], resamples: int, stream: int) -> Array:
    """Draw by how much the columns' means are off in each resample, (columns, resamples): equal for all agents."""
    drawn: Array = np.random.default_rng([SEED, stream, len(errors)]).standard_normal((len(errors), resamples))
    off: Array = drawn * np.array(errors)[:, None]
    return off


def mean_estimate(values: Array, possible: Sequence[float] = (), confidence: float = CONFIDENCE) -> Estimate:
    """Return the mean of some values with its interval; ``possible`` as :func:`column` takes it."""
    return bootstrap(values[:, None], [column(0, possible)], confidence)[0]


def means_of_estimates(
    tables: Sequence[Sequence[Array]],
    statistics: Sequence[Sequence[Statistic]],
    confidences: Sequence[float],
    weights: Sequence[float],
    below: Sequence[Sequence[bool]] | None = None,
) -> list[Estimate]:
    """Estimate weighted means of one statistic each of independent episode tables; see :func:`sums_of_replicates`."""
    sums = sums_of_replicates(tables, statistics, weights, below)
    return [interval_of(*pair) for pair in zip(sums, confidences, strict=True)]


class Replicates(NamedTuple):
    """A figure with its value in every resample: what its interval and its comparisons with others are made of."""

    value: float
    low: Array  # (resamples,) with the further episodes that lower it; empty if there is nothing to resample
    high: Array  # (resamples,) with those that raise it
    floor: float = -np.inf  # the least that the figure can be
    is_at_floor: bool = False  # all parts of a floored sum are below 0 beyond chance


def sums_of_replicates(
    tables: Sequence[Sequence[Array]],
    statistics: Sequence[Sequence[Statistic]],
    weights: Sequence[float],
    below: Sequence[Sequence[bool]] | None = None,
) -> list[Replicates]:
    """Resample weighted means of statistics; rows are agents. Those with equal seeds stay paired in each resample.

    With ``below`` they are floored at 0: an estimate below 0 counts as 0, as do replicates of the upper end. Floored
    replicates of the lower end would lie above 0 by their noise alone, so there a replicate counts as it is, unless
    ``below`` says that the scenario's score is below 0 beyond chance: then it counts as 0. So the lower end is above 0
    only for a player that is better than 0 somewhere.
    """
    floor = 0.0 if below is not None else -np.inf
    values = [
        float(np.dot(weights, [max(floor, _value(table.mean(axis=0), one)) for table, one in zip(*row, strict=True)]))
        for row in zip(tables, statistics, strict=True)
    ]
    ends: list[Array | None] = [None] * len(values)
    # each scenario has a stream of its own: with a common one, equal rows would be drawn in all of them at once
    for stream, (column, ones) in enumerate(zip(zip(*tables, strict=True), zip(*statistics, strict=True), strict=True)):
        for agent, (table, one) in enumerate(zip(column, ones, strict=True)):
            if isfinite(values[agent]):
                low, high = replicates(one, one.further(table), *resampled(table, stream), stream)
                low = np.zeros_like(low) if below is not None and below[agent][stream] else low
                sums = weights[stream] * np.stack([low, np.maximum(floor, high)])
                before = ends[agent]
                if before is not None:  # as many as the shorter ones are
                    shortest = min(before.shape[1], sums.shape[1])
                    sums = before[:, :shortest] + sums[:, :shortest]
                ends[agent] = sums
    found = [
        Replicates(value, *(np.empty((2, 0)) if sums is None else sums))
        for value, sums in zip(values, ends, strict=True)
    ]
    if below is None:
        return found
    return [one._replace(floor=0.0, is_at_floor=all(own)) for one, own in zip(found, below, strict=True)]


def interval_of(one: Replicates, confidence: float = CONFIDENCE) -> Estimate:
    """Return the value with its interval over the replicates."""
    if one.is_at_floor:
        return Estimate(0.0, 0.0, 0.0)
    estimate = _interval(one.value, one.low, one.high, confidence) if len(one.low) else Estimate(one.value)
    return estimate if estimate.low is None else estimate._replace(low=max(one.floor, estimate.low))


class Difference(NamedTuple):
    """By how much the first of two figures is above the second, and how likely chance alone makes it so much."""

    estimate: Estimate
    p: float  # two-sided, not corrected
    error: float  # the standard deviation of the replicates; 0 if there are none


def difference_of(value: float, lowered: Array, raised: Array, confidence: float = CONFIDENCE) -> Difference:
    """Make the interval and the p-value of a difference from its replicates, with the further episode either way.

    If fewer than 1% of the replicates reach 0, the tail is taken to be exponential: the chance falls from 1% as
    ``exp(-end / m)``, with ``end`` the replicate at 1% and ``m`` the mean excess of the ones beyond it. So the smallest
    p of n pairs that all differ by as much as they can is about ``2 / 2^n``, like that of the sign-flip test.
    """
    finite = np.isfinite(lowered) & np.isfinite(raised)
    if not isfinite(value) or not finite.any() or finite.mean() < 0.9:
        return Difference(Estimate(value), 1.0, 0.0)
    lowered, raised = lowered[finite], raised[finite]
    p = min(1.0, 2 * min(_reaches_zero(lowered), _reaches_zero(-raised)))
    return Difference(_interval(value, lowered, raised, confidence), p, float(lowered.std() + raised.std()) / 2)


def _reaches_zero(values: Array) -> float:
    """Return the chance of a value of at most 0 if values are drawn as these."""
    few = len(values) // 100
    reached = np.count_nonzero(values <= ROUNDING)
    if reached > few:
        return reached / len(values)
    end = float(np.partition(values, few)[few])
    beyond = values[values < end]
    return few / len(values) * float(np.exp(-end / (end - beyond.mean()))) if len(beyond) else 1.0


def _interval(value: float, lowered: Array, raised: Array, confidence: float) -> Estimate:
    """Return the value with the ends of its interval, from the replicates with either further episode."""
    low, high = _quantile(lowered, (1 - confidence) / 2), _quantile(raised, (1 + confidence) / 2)
    if low is None or high is None or high - low <= 1e-9 * max(1.0, abs(value)):
        return Estimate(value)
    # Sums of weights are 1 but for rounding, and a share of 100% must not reach further.
    return Estimate(value, value if low > value - 1e-12 else low, value if high < value + 1e-12 else high)


def _quantile(replicates: Array, level: float) -> float | None:
    """Return a quantile of the replicates that are numbers; ``None`` if hardly any are."""
    finite = np.isfinite(replicates)
    numbers = replicates if finite.all() else replicates[finite]
    if len(numbers) < 0.9 * len(replicates) or not len(numbers):
        return None
    place = round(level * (len(numbers) - 1))
    return float(np.partition(numbers, place)[place])


def resampled(table: Array, stream: int = 0, most: int = RESAMPLES) -> tuple[Array, Array]:
    """Sum the weighted episodes in every resample, (k, resamples); with the further one's weight, (resamples,)."""
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
    """Sum a table's columns, (k, resamples), with weights (resamples, episodes), in pieces that stay in one thread."""
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
    """Draw flat Dirichlet weights of ``count`` episodes and a further one, (rows, count + 1); rows sum to 1."""
    weights: Array = rng.standard_exponential((count + 1, rows))
    weights /= weights.sum(axis=0)
    return weights.T  # so that the episodes' part is contiguous, which the matrix product would else copy
