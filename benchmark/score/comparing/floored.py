"""By how much one agent's floored score over scenarios is above another's, by the resampling of the scores' intervals.

In every resample two agents with equal seeds have equal weights of episodes (:mod:`benchmark.score.statistics`), so a
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

from agents.common.intervals import CONFIDENCE, Array
from benchmark.score import statistics as stats


class Part(NamedTuple):
    """What one agent did in one of the scenarios that its score is made of."""

    seeds: Array  # (episodes,) in order
    table: Array  # (episodes, columns)
    statistic: stats.Statistic  # its score; the first of its columns are the returns
    is_below: bool  # whether the score is below 0 beyond chance
    sums: Array  # (columns, resamples) weighted sums of the table
    rest: Array  # (resamples,) weights of the further episode

    @classmethod
    def of(cls, seeds: Array, table: Array, statistic: stats.Statistic, is_below: bool, stream: int) -> "Part":
        """Resample the table of a scenario, which has a stream of its own."""
        return cls(seeds, table, statistic, is_below, *stats.resampled(table, stream))

    @property
    def returns(self) -> Array:
        return self.table[:, self.statistic.columns[0]]

    def replicates(self, stream: int, off: float | None) -> tuple[Array, Array]:
        """The score in every resample: its lower replicates, and the higher ones, which are floored at 0.

        The further episode of the lower ones is worse than the mean by ``off``, but takes no more than the score that
        there is, and that of the higher ones is like the mean. Without ``off`` both are as the statistic has them. The
        lower ones of a score that is below 0 are 0.
        """
        if off is None:
            low, high = self._with(stream, *self.statistic.further(self.table))
        else:
            mean = self.table.mean(axis=0)
            worse = mean.copy()
            worse[self.statistic.columns[0]] -= off
            low, high = self._with(stream, worse, mean)
            low = np.minimum(high, np.maximum(0.0, low))
        return np.zeros_like(low) if self.is_below else low, np.maximum(0.0, high)

    def _with(self, stream: int, *further: Array) -> tuple[Array, Array]:
        return stats.replicates(self.statistic, (further[0], further[1]), self.sums, self.rest, stream)


def floored_difference(
    first: Sequence[Part], second: Sequence[Part], weights: Sequence[float], confidence: float = CONFIDENCE
) -> stats.Difference:
    """Subtract the scores of two agents over the same scenarios, in equal order."""
    sums: list[list[Array]] = [[], [], [], []]
    value = 0.0
    for stream, (a, b, weight) in enumerate(zip(first, second, weights, strict=True)):
        value += weight * (_score(a) - _score(b))
        for parts, replicates in zip((sums[:2], sums[2:]), _both(a, b, stream), strict=True):
            for part, one in zip(parts, replicates, strict=True):
                part.append(weight * one)
    count = min(len(part) for parts in sums for part in parts)
    low_a, high_a, low_b, high_b = (np.sum([part[:count] for part in parts], axis=0) for parts in sums)
    return stats.difference_of(value, np.maximum(0.0, low_a) - high_b, high_a - np.maximum(0.0, low_b), confidence)


def _score(part: Part) -> float:
    return max(0.0, float(part.statistic.of(part.table.mean(axis=0)[list(part.statistic.columns)])))


def _both(a: Part, b: Part, stream: int) -> list[tuple[Array, Array]]:
    """The replicates of two agents, whose further start is one of as large a difference as any was, either way."""
    if a.is_below or b.is_below or not np.array_equal(a.seeds, b.seeds):
        return [part.replicates(stream, None) for part in (a, b)]
    differences = a.returns - b.returns
    most, mean = float(np.abs(differences).max()), float(differences.mean())
    return [a.replicates(stream, most + mean), b.replicates(stream, most - mean)]
