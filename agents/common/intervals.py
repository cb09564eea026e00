"""Confidence intervals: the one record that a figure with its interval is, and the ways to come by the ends.

What varies decides which way it is:

* one mean over few independent runs, seeds or games: :func:`student`;
* a mean over many values, those of one episode together: :func:`half_interval`, which is normal; of shares
  :func:`wilson`;
* any function of means over independent parts: :func:`bootstrap`, which weighs the parts anew (Rubin 1981), or
  :func:`weights` and :func:`of_replicates` where the function takes the weights themselves;
* runs and episodes at once: :func:`mean_over_runs`, :func:`difference_of_means` and :func:`ratio_of_means`;
* scores of a leaderboard, whose next episode may be like none before: :mod:`benchmark.score.statistics`.

All intervals are of 95%. Every generator is seeded by a constant: equal data have equal intervals.
"""

from collections.abc import Callable, Sequence
from math import inf, isfinite, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CONFIDENCE = 0.95
LEVELS = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)

RESAMPLES = 4000  # Monte Carlo error of an interval's end at this number: about 0.05 standard errors of the estimate
SEED = 20250810
_REWEIGHTED, _SEED_OF_WEIGHTS = 2000, 20260101
_Z = 1.96  # the normal distribution's quantile of LEVELS[1], as rounded as recorded results have it


class Estimate(NamedTuple):
    """A figure with its 95% interval; its ends are ``None`` where there isn't enough to have one.

    ``value`` isn't finite where the figure isn't defined, such as a correlation with what never varies.
    """

    value: float
    low: float | None = None
    high: float | None = None

    def __format__(self, form: str) -> str:
        """``f"{estimate:.3f}"``: ``0.512 [0.470, 0.555]``, or ``0.512`` without interval, or ``-`` without value."""
        if not form:
            return str(self)
        if not isfinite(self.value):
            return "-"
        interval = "" if self.low is None or self.high is None else f" [{self.low:{form}}, {self.high:{form}}]"
        return f"{self.value:{form}}{interval}"

    def to_json(self) -> dict[str, float | None]:
        """``{"value", "low", "high"}``, without NaN and infinity, which JSON doesn't have."""
        return {name: end if end is not None and isfinite(end) else None for name, end in self._asdict().items()}


def percentiles(replicates: Array) -> tuple[float, float]:
    """The ends that leave out 2.5% of a figure's replicates on either side.

    Replicates that aren't numbers don't count; NaN where there are no others.
    """
    numbers = replicates[np.isfinite(replicates)]
    low, high = np.quantile(numbers, LEVELS) if len(numbers) else (nan, nan)
    return float(low), float(high)


def of_replicates(value: float, replicates: Array) -> Estimate:
    """A figure with the percentiles of its replicates, which reach as far as the figure itself.

    Rounding aside, a figure of equal parts is so its own interval.
    """
    if not isfinite(value):
        return Estimate(nan)
    low, high = percentiles(replicates)
    return Estimate(value) if low != low else Estimate(value, min(low, value), max(high, value))


def bootstrap(table: Array, of: Callable[[Array], Array]) -> Estimate:
    """A function of a table's column means, (..., columns) -> (...), by a Bayesian bootstrap over the rows.

    The rows of ``table``, shape (parts, columns), are independent. Tables of as many rows get the same weights, so two
    figures of the same parts are compared pair by pair.
    """
    if not len(table):
        return Estimate(nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(of(table.mean(axis=0)))
        return of_replicates(value, of(weights(len(table)) @ table) if len(table) > 1 else np.empty(0))


def weights(parts: int) -> Array:
    """Flat Dirichlet weights, shape (replicates, parts), whose rows sum to 1."""
    return np.random.default_rng(_SEED_OF_WEIGHTS).dirichlet(np.ones(parts), _REWEIGHTED)


def mean(column: int) -> Callable[[Array], Array]:
    """The mean of one column."""
    return lambda means: means[..., column]


def ratio(numerator: int, denominator: int) -> Callable[[Array], Array]:
    """The ratio of two columns' means."""
    return lambda means: means[..., numerator] / means[..., denominator]


def student(values: Sequence[float] | Array) -> Estimate:
    """The mean with Student's interval, which has no ends for fewer than two values; NaN of none."""
    if len(values) < 2:
        return Estimate(float(values[0]) if len(values) else nan)
    value = float(np.mean(values))
    half = float(student_quantile(len(values) - 1)) * float(np.std(values, ddof=1)) / sqrt(len(values))
    return Estimate(value, value - half, value + half)


def student_quantile(freedom: Any, confidence: float = CONFIDENCE) -> Any:
    """How many standard errors a two-sided interval of Student's reaches, by its degrees of freedom: one, or many."""
    from scipy.special import stdtrit

    return stdtrit(freedom, (1 + confidence) / 2)


def half_interval(values: Sequence[float] | Array, episodes: Sequence[int] | None = None) -> float:
    """Half the width of the normal interval of the mean of ``values``, where those of one episode go together.

    Values of one episode, such as the returns of its players, depend on each other: the episodes are the sample. By
    default every value has an episode of its own. NaN for a single episode.
    """
    _, episode = np.unique(range(len(values)) if episodes is None else episodes, return_inverse=True)
    sums = np.bincount(episode, weights=np.asarray(values) - np.mean(values))
    n = len(sums)
    return float(_Z * np.sqrt((sums**2).sum() * n / (n - 1)) / len(values)) if n > 1 else nan


def wilson(successes: Sequence[float] | Array) -> Estimate:
    """The share of successes, of values 0 and 1, with the score interval of Wilson (1927)."""
    n, share = len(successes), float(np.mean(successes))
    middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    return Estimate(share, middle - half, middle + half)


def mean_over_runs(trained: Array) -> Estimate:
    """The mean over runs and episodes with its interval over both; shape (runs, episodes)."""
    means, _ = _over_runs(trained, trained[0])
    return Estimate(float(trained.mean()), *percentiles(means))


def difference_of_means(trained: Array, base: Array) -> Estimate:
    """Mean of several runs minus that of one agent, on the same episodes.

    Args:
        trained: shape (runs, episodes).
        base: shape (episodes,).
    """
    means, base_means = _over_runs(trained, base)
    return Estimate(float(trained.mean() - base.mean()), *percentiles(means - base_means))


def ratio_of_means(trained: Array, base: Array) -> Estimate:
    """Mean of several runs over that of one agent, on the same episodes; shapes as in :func:`difference_of_means`.

    It has no interval where the base's mean is 0, in the sample or in a resample.
    """
    means, base_means = _over_runs(trained, base)
    if base.mean() <= 0:
        return Estimate(inf)
    value = float(trained.mean() / base.mean())
    return Estimate(value) if (base_means <= 0).any() else Estimate(value, *percentiles(means / base_means))


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
