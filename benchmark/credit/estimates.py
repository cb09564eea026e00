"""Figures of batches with intervals: a Bayesian bootstrap over what was drawn independently.

Every figure is a smooth function of column means of a table with a row for each independent part (a group's episodes in
one batch, or a batch). Parts are weighted by a flat Dirichlet (Rubin, 1981); the generator is seeded by a constant, so
equal tables have equal intervals, and two methods on the same parts are compared pair by pair.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmark.score.statistics import LEVELS

Array = NDArray[np.float64]

REPLICATES = 2000

_SEED = 20260101


class Figure(NamedTuple):
    """A figure with its 95% interval.

    ``value`` is ``None`` where the figure isn't defined, such as a correlation with what never varies; the ends are
    ``None`` where there are fewer than two independent parts.
    """

    value: float | None
    low: float | None = None
    high: float | None = None

    def to_json(self) -> dict[str, float | None]:
        return self._asdict()


def figure(table: Array, of: Callable[[Array], Array]) -> Figure:
    """A function of a table's column means, (..., columns) -> (...), with its interval.

    ``table`` is (parts, columns).
    """
    if not len(table):
        return Figure(None)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(of(table.mean(axis=0)))
        if not np.isfinite(value):
            return Figure(None)
        if len(table) < 2:
            return Figure(value)
        replicates = of(weights(len(table)) @ table)
    replicates = replicates[np.isfinite(replicates)]
    if not len(replicates):
        return Figure(value)
    low, high = np.quantile(replicates, LEVELS)
    # rounding aside, a figure of equal parts is its own interval
    return Figure(value, min(float(low), value), max(float(high), value))


def weights(parts: int) -> Array:
    """(replicates, parts) weights that sum to 1."""
    return np.random.default_rng(_SEED).dirichlet(np.ones(parts), REPLICATES)


def mean(column: int) -> Callable[[Array], Array]:
    """The mean of one column."""
    return lambda means: means[..., column]


def ratio(numerator: int, denominator: int) -> Callable[[Array], Array]:
    """The ratio of two columns' means."""
    return lambda means: means[..., numerator] / means[..., denominator]
