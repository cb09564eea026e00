"""Credit by the rewards of single turns: BEACON, MARSHAL and MT-GRPO."""

from functools import partial
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from agents.msgrpo import Shared, compared, configured
from agents.msgrpo.credit import (
    Batch,
    ByReturn,
    Credit,
    Floats,
    How,
    Scale,
    returns_to_go,
    same,
    split_like,
    standardised,
    within_groups,
    within_labels,
    within_steps,
)


@configured
class BEACON(ByReturn):
    """The episode's return among its group, plus how near the step is to the next milestone among its segment.

    Milestones (steps with a positive reward) cut an episode into segments, and a later failure takes nothing from what
    led to an earlier one (arXiv 2605.06078; ``migpo/core_migpo.py`` in ZJU-REAL/BEACON): ::

        A_it = (R_i - mean_g R) + w (S_it - mean of S over the group's steps in the same segment)
        S_it = gamma^(m - t) reward of m,   m the step of the next milestone; 0 if none follows
    """

    step_weight: float = Field(1.0, ge=0)
    """w, the weight of the step's part; 0 leaves the episode's alone."""
    scale: Scale = "none"
    """Divides both differences: nothing, or the standard deviation of the set."""
    discount: float = Field(0.99, gt=0, le=1)
    """Gamma, by which a milestone counts less for each step before it."""

    renamed: ClassVar[Shared] = {"decay": "discount"}

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        how = partial(compared, scale=self.scale)
        whole = within_groups(batch, batch.returns(), how)
        shaped, segments = [], []
        for each in batch.trajectories:
            ahead, found = 0.0, np.zeros(len(each))
            for t in range(len(each) - 1, -1, -1):
                found[t] = ahead = float(each.rewards[t]) if each.rewards[t] > 0 else self.discount * ahead
            shaped.append(found)
            before = np.cumsum(each.rewards[:-1] > 0).tolist()  # a segment is told by the milestones before it
            segments += [(each.group, k) for k in (0, *before)]
        steps = split_like(within_labels(segments, np.concatenate(shaped), how), shaped)
        return Credit.of([e + self.step_weight * s for e, s in zip(whole, steps, strict=True)])


@configured
class MARSHAL(ByReturn):
    """Whitened returns-to-go of whitened rewards, with a mean of its own for every seat.

    Over the steps of the batch, in this order: the mean of the seat's rewards is subtracted; rewards are whitened;
    ``G_it``; the mean of the seat's values is subtracted; they are whitened. A seat is a player of a scenario, groups
    play no part (arXiv 2510.15414; thu-nics/MARSHAL).
    """

    means: Literal["steps", "distinct"] = "steps"
    """What is subtracted from a seat's returns-to-go: their mean over steps, or, as the authors do, over the different
    values among them."""

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


@configured
class MTGRPO(ByReturn):
    """The group-normalised return plus the step's reward among the group's at the same time (arXiv 2505.11821).

    ``A_it = z_g(R_i) + lam z(r_it)``, the second z over the group's episodes that are alive at t.
    """

    turn_weight: float = Field(1.0, ge=0)
    """lam, the weight of the step's reward."""

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        whole = within_groups(batch, batch.returns(self.discount), standardised)
        turns = within_steps(batch, "time", [each.rewards for each in batch.trajectories], standardised)
        return Credit.of([e + self.turn_weight * turn for e, turn in zip(whole, turns, strict=True)])
