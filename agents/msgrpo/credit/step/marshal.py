"""MARSHAL: turn-level returns-to-go for self-play, centred for every seat (arXiv 2510.15414; thu-nics/MARSHAL).

In this order, over the steps of the batch: the mean of the seat's step rewards is subtracted; rewards are whitened;
``G_it = sum_{u >= t} gamma^(u - t) r_iu``; the mean of the seat's values is subtracted; they are whitened to ``A_it``.
A seat is a player of a scenario. Whitening is ``z`` over all steps of the batch. Groups play no part.

Our reading: both means are over steps. The authors take the mean of the DISTINCT values among a seat's returns-to-go,
which is ``means = "distinct"``.
"""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from agents.msgrpo.credit.arithmetic import centred, whitened, within
from agents.msgrpo.credit.batch import Batch, Credit, Floats, Step, returns_to_go
from agents.msgrpo.plugins import Shared, configured


@configured
class MARSHAL:
    """Whitened returns-to-go of whitened rewards, with a mean of its own for every seat."""

    means: Literal["steps", "distinct"] = "steps"
    """What is subtracted from a seat's returns-to-go: their mean over steps, or over the different values among
    them."""
    discount: float = Field(1.0, gt=0, le=1)
    """Discount per step."""

    needs: ClassVar[frozenset[str]] = frozenset()
    shared: ClassVar[Shared] = {"discount": "discount"}

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        seats: dict[tuple[str, str], list[Step]] = {}
        for i, trajectory in enumerate(batch.trajectories):
            seats.setdefault(trajectory.seat, []).extend((i, t) for t in range(len(trajectory)))
        rewards = whitened(within(seats.values(), [each.rewards for each in batch.trajectories], centred))
        to_go = [returns_to_go(each, self.discount) for each in rewards]
        to_go = within(seats.values(), to_go, centred if self.means == "steps" else _less_distinct)
        return Credit.of(whitened(to_go))


def _less_distinct(values: Floats) -> Floats:
    # sums of the same rewards in another order differ in their last bits and are still the same value
    distinct = np.unique(np.round(values, 9))
    return np.zeros_like(values) if len(distinct) == 1 else values - distinct.mean()
