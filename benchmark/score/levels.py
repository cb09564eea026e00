"""The level at which a player keeps half of a ladder's headroom, from the episodes that it played.

An episode at a level comes to ``y``: on average 0 for the best blind play, and 1 for the optimum. The model is
``E[y | level] = p = LAPSE + (1 - 2 LAPSE) / (1 + exp((level - theta) / spread))``: ``theta`` is the player's level, and
``LAPSE`` allows for a good player's rare failure (Wichmann and Hill, "The psychometric function", 2001).

The posterior is exact on a grid, by the quasi-likelihood of variance ``dispersion * p (1 - p)`` (McCullagh and Nelder,
"Generalized Linear Models", 1989, chapter 9), with the dispersion of the residuals and no less than a coin's. The next
episodes are played at the level whose mean ``y`` has, for its own uncertainty, the largest covariance with ``theta``
(Goldstein and Wooff, "Bayes Linear Statistics", 2007). ``docs/research/ladders.md`` reports the coverage.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from agents.common.intervals import LEVELS, Array

BEYOND = 3.0  # so many levels below the first one and above the last one may a player's level be

STEP, SPREADS = 0.05, np.geomspace(0.25, 6.0, 13)  # the grid
LAPSE = 0.03
PRIOR_EPISODES = 6.0  # so many episodes of a coin's dispersion count beside those that were played


class Seen(NamedTuple):
    """The episodes at one level."""

    values: Sequence[float] | Array  # ``y`` of each
    weight: float = 1.0  # the inverse of their dispersion, in proportion to that at other levels


class Found(NamedTuple):
    """A player's level with its 95% interval; an end is ``None`` if the level is beyond the ladder on that side."""

    level: float
    low: float | None
    high: float | None
    spread: float


class Fit:
    """The posterior of a player's level after the episodes ``seen``, on a ladder from ``first`` to ``last``."""

    def __init__(self, seen: Mapping[int, Seen], first: int, last: int) -> None:
        self.first, self.last = first, last
        self._thetas = np.arange(first - BEYOND, last + BEYOND + STEP / 2, STEP)
        logs, squares = np.zeros((2, len(self._thetas), len(SPREADS)))
        for level, (values, weight) in seen.items():
            p, mean, n = self._curve(level), float(np.mean(values)), weight * len(values)
            logs += n * (mean * np.log(p) + (1 - mean) * np.log(1 - p))
            squares += n * ((mean - p) ** 2 + float(np.var(values))) / (p * (1 - p))
        count = PRIOR_EPISODES + sum(len(values) for values, _ in seen.values())
        self._dispersion, self._mass = 1.0, _normalised(logs)
        for _ in range(2):  # the residuals are those of the likely curves, which hang on the dispersion a little
            self._dispersion = max(1.0, (PRIOR_EPISODES + float((self._mass * squares).sum())) / count)
            self._mass = _normalised(logs / self._dispersion)

    def found(self) -> Found:
        """Return the mean of the posterior and the central 95%; beyond the ladder one end, which leaves out 5%."""
        of_theta, of_spread = self._mass.sum(axis=1), self._mass.sum(axis=0)
        level, spread = float(of_theta @ self._thetas), float(np.exp(of_spread @ np.log(SPREADS)))
        if level < self.first:
            return Found(level, None, self._quantile(0.95), spread)
        if level > self.last:
            return Found(level, self._quantile(0.05), None, spread)
        return Found(level, self._quantile(LEVELS[0]), self._quantile(LEVELS[1]), spread)

    def next_level(self, episodes: int, weights: Mapping[int, float]) -> int:
        """Return the level, of those that have ``weights``, at which more episodes should narrow ``theta`` most."""

        def narrowed(level: int) -> float:
            """Return by how much the variance of ``theta`` is expected to fall."""
            p, mass, dispersion = self._curve(level), self._mass, self._dispersion / (weights[level] * episodes)
            mean = float((mass * p).sum())
            together = float((mass * (p - mean) * self._thetas[:, None]).sum())
            return together**2 / float((mass * ((p - mean) ** 2 + dispersion * p * (1 - p))).sum())

        return max(weights, key=narrowed)

    def _curve(self, level: int) -> Array:
        """Return ``E[y]`` at a level, shape (thetas, spreads)."""
        good = 1 / (1 + np.exp((level - self._thetas[:, None]) / SPREADS))
        return np.asarray(LAPSE + (1 - 2 * LAPSE) * good)

    def _quantile(self, share: float) -> float:
        return float(np.interp(share, np.cumsum(self._mass.sum(axis=1)), self._thetas + STEP / 2))


def _normalised(logs: Array) -> Array:
    mass = np.exp(logs - logs.max())
    return np.asarray(mass / mass.sum())
