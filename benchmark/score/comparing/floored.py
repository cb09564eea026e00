"""By how much one agent's floored score over scenarios is above another's, by the resampling of the scores' intervals.

In every resample two agents with equal seeds have equal weights of episodes (:mod:`agents.common.intervals`), so a
difference is one of whole starts that stay paired; scenarios are independent. Each scenario's mean is floored in each
resample as in the scores' own intervals: at 0 where that is on the safe side, not where noise would come out positive.

The further start, which was not played, may bring as large a difference as any start did, either way: as in the
sign-flip test, whose verdict on a few differences of one sign the interval then shares. It may take away a scenario's
score, and no more than that. Each agent's own further episode stands in beside an agent whose score is below 0 beyond
chance, and so counts 0 for certain, and on starts that aren't the same.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from agents.common import intervals as stats
from agents.common.intervals import CONFIDENCE, Array


class Part(NamedTuple):
    """What one agent did in one of the scenarios that its score is made of, and its score in every resample."""

    seeds: Array  # (episodes,) in order
    returns: Array  # (episodes,)
    score: float
    is_below: bool  # whether the score is below 0 beyond chance
    own: tuple[Array, Array]  # (resamples,) with the further episode that lowers it, and with the one that raises it
    plain: Array  # (resamples,) with one that is like the mean
    slope: Array  # (resamples,) by how much less that is for every unit of return that the further episode is worse

    @classmethod
    def of(cls, seeds: Array, table: Array, statistic: stats.Statistic, is_below: bool, stream: int) -> "Part":
        """Resample the table of a scenario, which has a stream of its own; ``statistic`` is linear in the returns."""
        drawn = stats.resampled(table, stream)
        returns, mean = statistic.columns[0], table.mean(axis=0)
        worse = mean.copy()
        worse[returns] -= 1.0
        below, plain = stats.replicates(statistic, (worse, mean), *drawn, stream)
        own = stats.replicates(statistic, statistic.further(table), *drawn, stream)
        score = float(statistic.of(mean[list(statistic.columns)]))
        return cls(seeds, table[:, returns], score, is_below, own, plain, plain - below)

    def replicates(self, off: float | None) -> tuple[Array, Array]:
        """The score in every resample: its lower replicates, and the higher ones, which are floored at 0.

        The further episode of the lower ones is worse than the mean by ``off``, but takes no more than the score that
        there is, and that of the higher ones is like the mean. Without ``off`` both are as the statistic has them. The
        lower ones of a score that is below 0 are 0.
        """
        low, high = self.own
        if off is not None:
            low, high = np.minimum(self.plain, np.maximum(0.0, self.plain - off * self.slope)), self.plain
        return np.zeros_like(low) if self.is_below else low, np.maximum(0.0, high)


def floored_difference(
    first: Sequence[Part], second: Sequence[Part], weights: Sequence[float], confidence: float = CONFIDENCE
) -> stats.Difference:
    """Subtract the scores of two agents over the same scenarios, in equal order."""
    sums: list[list[Array]] = [[], [], [], []]
    value = 0.0
    for a, b, weight in zip(first, second, weights, strict=True):
        value += weight * (max(0.0, a.score) - max(0.0, b.score))
        for parts, replicates in zip((sums[:2], sums[2:]), _both(a, b), strict=True):
            for part, one in zip(parts, replicates, strict=True):
                part.append(weight * one)
    count = min(len(part) for parts in sums for part in parts)
    low_a, high_a, low_b, high_b = (np.sum([part[:count] for part in parts], axis=0) for parts in sums)
    return stats.difference_of(value, np.maximum(0.0, low_a) - high_b, high_a - np.maximum(0.0, low_b), confidence)


def _both(a: Part, b: Part) -> list[tuple[Array, Array]]:
    """The replicates of two agents, whose further start is one of as large a difference as any was, either way."""
    if a.is_below or b.is_below or not np.array_equal(a.seeds, b.seeds):
        return [part.replicates(None) for part in (a, b)]
    differences = a.returns - b.returns
    most, mean = float(np.abs(differences).max()), float(differences.mean())
    return [a.replicates(most + mean), b.replicates(most - mean)]
