"""MARSHAL: turn-level returns-to-go for self-play, centred for every seat (arXiv 2510.15414; thu-nics/MARSHAL).

In this order, over the steps of the batch: the mean of the seat's step rewards is subtracted; rewards are whitened;
``G_it = sum_{u >= t} gamma^(u - t) r_iu``; the mean of the seat's values is subtracted; they are whitened to ``A_it``.
A seat is a player of a scenario. Whitening is ``z`` over all steps of the batch. Groups play no part.

Our reading: both means are over steps. The authors take the mean of the DISTINCT values among a seat's returns-to-go,
which is ``means = "distinct"``.
"""

from typing import Literal

import numpy as np

from agents.msgrpo import compared, configured
from agents.msgrpo.credit import (
    Batch,
    ByReturn,
    Credit,
    Floats,
    How,
    returns_to_go,
    same,
    split_like,
    standardised,
    within_labels,
)


@configured
class MARSHAL(ByReturn):
    """Whitened returns-to-go of whitened rewards, with a mean of its own for every seat."""

    means: Literal["steps", "distinct"] = "steps"
    """What is subtracted from a seat's returns-to-go: their mean over steps, or over the different values among
    them."""

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        played = batch.trajectories
        seats = [each.seat for each in played for _ in range(len(each))]
        paid = standardised(within_labels(seats, np.concatenate([each.rewards for each in played]), compared))
        to_go = np.concatenate([returns_to_go(each, self.discount) for each in split_like(paid, played)])
        less_mean: How = compared if self.means == "steps" else _less_distinct
        return Credit.of(split_like(standardised(within_labels(seats, to_go, less_mean)), played))


def _less_distinct(values: Floats) -> Floats:
    ordered = np.sort(values)
    distinct = ordered[np.append(True, ~same(ordered[1:], ordered[:-1]))]
    return np.zeros_like(values) if len(distinct) == 1 else values - distinct.mean()
