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
        """The score in every resample, with a further episode that is lower or higher than the mean by ``off``.

        Without ``off`` it is as the statistic has it. The lower ones of a score that is below 0 count as 0, the higher
        ones are floored; a further start takes no more than the score that there is.
        """
        if off is None:
            low, high = stats.replicates(
                self.statistic, self.statistic.further(self.table), self.sums, self.rest, stream
            )
        else:
            ends = stats.further_episodes(self.table, self.statistic.columns[0], off)
            low, high = stats.replicates(self.statistic, ends, self.sums, self.rest, stream)
            mean = self.table.mean(axis=0)
            (plain, _) = stats.replicates(self.statistic, (mean, mean), self.sums, self.rest, stream)
            low = np.minimum(plain, np.maximum(0.0, low))
        return np.zeros_like(low) if self.is_below else low, np.maximum(0.0, high)


def floored_difference(
    first: Sequence[Part], second: Sequence[Part], weights: Sequence[float], confidence: float = CONFIDENCE
) -> stats.Difference:
    """Subtract the scores of two agents over the same scenarios, in equal order."""
    sums: list[list[Array]] = [[], [], [], []]
    value = 0.0
    for stream, (a, b, weight) in enumerate(zip(first, second, weights, strict=True)):
        value += weight * (_score(a) - _score(b))
        lower, higher = _offsets(a, b)
        (low_a, _), (_, high_b) = a.replicates(stream, lower), b.replicates(stream, lower)
        (_, high_a), (low_b, _) = a.replicates(stream, higher), b.replicates(stream, higher)
        for parts, part in zip(sums, (low_a, high_b, high_a, low_b), strict=True):
            parts.append(weight * part)
    count = min(len(part) for parts in sums for part in parts)
    low_a, high_b, high_a, low_b = (np.sum([part[:count] for part in parts], axis=0) for parts in sums)
    return stats.difference_of(value, np.maximum(0.0, low_a) - high_b, high_a - np.maximum(0.0, low_b), confidence)


def _score(part: Part) -> float:
    return max(0.0, float(part.statistic.of(part.table.mean(axis=0)[list(part.statistic.columns)])))


def _offsets(a: Part, b: Part) -> tuple[float | None, float | None]:
    """How far off their means both are on the further start, if it lowers their difference, and if it raises it."""
    if a.is_below or b.is_below or not np.array_equal(a.seeds, b.seeds):
        return None, None
    differences = a.returns - b.returns
    most, mean = float(np.abs(differences).max()), float(differences.mean())
    return (most + mean) / 2, (most - mean) / 2
