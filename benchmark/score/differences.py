"""Tests whether a difference is more than chance, their correction, and the number of episodes that one takes."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import ceil, log, log2, sqrt
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from agents.common.intervals import LEAST_RESAMPLES, ROUNDING, Array, is_above, is_rounding, resampled
from benchmark.score.document import EstimateView

Key = TypeVar("Key")

LEVEL = 0.05  # two agents are told apart if the corrected p-value of their difference is smaller
POWER = 0.8  # with which the number of episodes that is named shows a difference

ENUMERATION_LIMIT = 14  # up to this many unequal pairs all 2^n signs are tried
EXACT_LIMIT = 1000  # above this many unequal pairs the sign-flip distribution is normal to all printed digits
GRID = 400  # at least so many steps between 0 and the largest difference if there is no common unit
ROUNDED = 0.01  # of the sum of all differences but the largest: what rounding to a grid may change them by
MOST_NEEDED = 10**9  # pairs; a difference that takes more is none
MOST_WORK = 30_000_000  # additions: a grid isn't made finer beyond this


def paired_p_value(differences: Array) -> float:
    """Return the two-sided p-value of "no difference" for differences (pairs,): the sign-flip test of their sum.

    It is exact, by enumeration of the signs or the distribution of the sum on the grid of the differences; those on
    none are rounded by little. Above :data:`EXACT_LIMIT` pairs the sum is normal.
    """
    differences = _unrounded(differences)
    sizes = np.abs(differences[differences != 0])  # a zero stays zero whatever its sign: it changes no permutation
    observed = abs(float(differences.sum()))
    if len(sizes) < 2:  # with one, both signs are as extreme
        return 1.0
    if len(sizes) > EXACT_LIMIT:
        from scipy.special import ndtr

        return float(2 * ndtr(-observed / np.sqrt((sizes**2).sum())))
    if len(sizes) <= ENUMERATION_LIMIT:
        sums = np.zeros(1)
        for size in sizes:
            sums = np.concatenate([sums + size, sums - size])
        return float(np.mean(np.abs(sums) >= observed - 1e-9 * sizes.sum()))
    steps = _on_a_grid(sizes)
    total = int(steps.sum())
    reached = abs(int((steps * np.sign(differences[differences != 0])).sum()))
    chances = np.zeros(total + 1)  # chances[s]: that the positive differences sum to s steps
    chances[0] = 1.0
    end = 1  # sums from here on can't be reached yet; with small steps first, most can't for long
    for step in np.sort(steps).tolist():
        part = 0.5 * chances[:end]
        chances[:end] = part
        chances[step : end + step] += part
        end += step
    extreme = np.abs(2 * np.arange(total + 1) - total) >= reached
    return min(1.0, float(chances[extreme].sum()))


def _unrounded(differences: Array) -> Array:
    """Return the differences, those of nothing but rounding as 0, which corrections for luck leave."""
    return np.where(np.abs(differences) <= ROUNDING, 0.0, differences)


def _on_a_grid(sizes: Array) -> NDArray[np.int64]:
    """Differences as whole numbers of a step: their common unit of at least 0.01, else a small part of the largest."""
    hundredths: NDArray[np.int64] = np.rint(100 * sizes).astype(np.int64)
    if hundredths.any() and np.allclose(hundredths / 100, sizes, rtol=0, atol=1e-9):
        steps: NDArray[np.int64] = hundredths // int(np.gcd.reduce(hundredths))
        if steps.max() <= GRID or len(steps) * int(steps.sum()) <= MOST_WORK:
            return steps
    largest, grid = float(sizes.max()), GRID
    while True:
        steps = np.rint(sizes * (grid / largest)).astype(np.int64)
        changed = float(np.abs(steps * (largest / grid) - sizes).sum())
        # one disaster among small differences: on a coarse grid they would all be 0, and nothing be told apart
        if changed <= ROUNDED * (float(sizes.sum()) - largest) or 2 * len(steps) * int(steps.sum()) > MOST_WORK:
            return steps
        grid *= 2


def holm(p_values: Mapping[Key, float], family: int | None = None) -> dict[Key, float]:
    """Adjust p-values by Holm's step-down correction (Holm 1979), in the given order.

    ``family`` is how many comparisons could have been made, by default these: leaving some out errs on the safe side.
    """
    family = max(family or 0, len(p_values))
    adjusted, running = dict(p_values), 0.0
    for place, key in enumerate(sorted(p_values, key=p_values.__getitem__)):
        running = max(running, min(1.0, (family - place) * p_values[key]))
        adjusted[key] = running
    return adjusted


def fewest_pairs(level: float) -> int:
    """Return the fewest pairs with which :func:`paired_p_value` may be below a level: it is at least ``2 / 2^n``."""
    return 1 + int(1 - log2(level))


class Needed(NamedTuple):
    """The number of pairs of episodes that would show a difference, with its 95% interval."""

    value: int
    low: int
    high: int | None  # ``None`` if the difference may be 0, which no number of pairs shows


def episodes_needed(differences: Array, level: float = LEVEL) -> Needed | None:
    """Count the pairs at which :func:`paired_p_value` is below a level in four of five runs, if all are as these.

    By :func:`_pairs_for`, and so many that enough pairs are unequal for so small a p. ``None`` if the observed
    difference is 0. The interval is that of a Bayesian bootstrap, with a further pair that is equal.
    """
    if len(differences) < 2:
        return None
    differences, more = _unrounded(differences), len(differences) / (len(differences) - 1)
    mean, variance = float(differences.mean()), float(differences.var(ddof=1))
    value = float(_pairs_for(np.array(mean), np.array(variance), level))
    if not value <= MOST_NEEDED:
        return None
    least = _enough_unequal(float(np.mean(differences != 0)), level)
    means, squares = resampled(np.stack([differences, differences**2], axis=1), most=LEAST_RESAMPLES)[0]
    numbers = np.sort(_pairs_for(means, np.maximum(0.0, squares - means**2) * more, level))
    low, high = (float(numbers[round(end * (len(numbers) - 1))]) for end in (0.025, 0.975))
    may_be_0 = np.mean(means * mean <= 0) >= 0.025 or high > MOST_NEEDED
    whole = max(least, ceil(value))
    return Needed(whole, min(whole, max(least, ceil(low))), None if may_be_0 else max(whole, ceil(high)))


def pairs_to_detect(
    size: float, variance: float, freedom: float, level: float, further: Sequence[float] = ()
) -> Needed | None:
    """Count the pairs that show a mean difference of ``size`` in four of five runs; ``None`` without a variance.

    The interval is that of a variance with so many degrees of freedom; ``further`` is that of :func:`power_of`.
    """
    from scipy.special import chdtri

    if is_rounding(sqrt(variance), size):
        return None
    variances = variance * freedom / np.array([freedom, *chdtri(freedom, [0.025, 0.975])])
    value, low, high = np.minimum(_pairs_for(np.full(3, size), variances, level), MOST_NEEDED)
    least = fewest_pairs(level)
    counts = [max(least, ceil(one)) for one in (value, low, high)]
    if further:
        for place, one in enumerate(variances.tolist()):
            power = partial(power_of, size=size, variance=one, level=level, further=further)
            counts[place] = bisect_left(range(MOST_NEEDED), POWER, lo=counts[place], key=power)
    return Needed(*counts)


def power_of(pairs: int, size: float, variance: float, level: float, further: Sequence[float] = ()) -> float:
    """Return the chance that so many pairs with a mean difference of ``size`` have a p-value below a level.

    ``further`` are the differences, one a scenario, that an overall score's test takes a further pair to fall short by.
    """
    from scipy.special import ndtr, ndtri

    if pairs < fewest_pairs(level):
        return 0.0
    normal, short = ndtri(1 - level / 2), 0.0
    spread = normal**2 * (size**2 + variance)
    if further:  # their weights are exponential
        tail = sum(one**2 for one in further) * pairs * ((log(2 / level) - 1) / (pairs + 1)) ** 2
        spread, short = normal**2 * variance + tail, sum(further) / (pairs + 1)
    reach = (size - short) * sqrt(pairs) - sqrt(spread)
    return float(ndtr(reach / sqrt(variance))) if variance else float(reach > 0)


def _enough_unequal(unequal: float, level: float) -> int:
    """Return how many pairs have enough unequal ones for a p below the level in four of five runs, by their share."""
    from scipy.special import bdtrc

    fewest = fewest_pairs(level)
    enough = fewest
    while bdtrc(fewest - 1, enough, unequal) < POWER:
        enough *= 2
    return bisect_left(range(enough), POWER, lo=fewest, key=lambda pairs: float(bdtrc(fewest - 1, pairs, unequal)))


def _pairs_for(means: Array, variances: Array, level: float) -> Array:
    """Return ``n = ((z_(1 - level / 2) * rms + z_0.8 * sd) / mean)^2`` of differences; infinite if their mean is 0.

    Flipped signs have the root mean square of the differences as their deviation.
    """
    from scipy.special import ndtri

    root = np.sqrt(means**2 + variances)
    reach = ndtri(1 - level / 2) * root + ndtri(POWER) * np.sqrt(variances)
    known = np.abs(means) > ROUNDING * np.maximum(1.0, root)
    numbers: Array = np.divide(reach, means, out=np.full(np.shape(means), np.inf), where=known) ** 2
    return numbers


def any_disjoint(first: Iterable[EstimateView | None], second: Iterable[EstimateView | None]) -> bool:
    """Return whether two agents' intervals, if they have any, have no point in common in one of their figures."""
    for one, other in zip(first, second, strict=True):
        if one is None or other is None or None in (one["low"], other["low"]):
            continue
        (low_a, high_a), (low_b, high_b) = ((each["low"] or 0.0, each["high"] or 0.0) for each in (one, other))
        if is_above(low_a, high_b) or is_above(low_b, high_a):
            return True
    return False


TIE = "not told apart"


def verdict(a: str, b: str, difference: float, corrected: float, apart: bool) -> str:
    """Name the better agent: ahead by a corrected p-value below 0.05, or by own intervals that are ``apart``."""
    return f"{a if difference > 0 else b} is better" if corrected < LEVEL or apart else TIE
