"""BEACON: credit that ends at milestones (arXiv 2605.06078; ``migpo/core_migpo.py`` in ZJU-REAL/BEACON).

Milestones cut an episode into segments, and a later failure takes nothing from what led to an earlier one: ::

    A_it = (R_i - mean_g R) + w (S_it - mean of S over the group's steps in the same segment)
    S_it = gamma^(m - t) size_m,   m the step of the next milestone; 0 if none follows

A segment is told by how many milestones came before it. ``w = 1`` and ``gamma = 0.99``; ``scale = "group_std"`` also
divides both differences, as one mode of the authors' code does.

Our reading: a milestone is a step with a positive reward, and its size is that reward. The authors' environments tell
milestones of their own, each of size 10, which there is the reward of success. Every episode counts once in ``mean_g``.
"""

from functools import partial
from typing import ClassVar

import numpy as np
from pydantic import Field

from agents.msgrpo import Shared, compared, configured
from agents.msgrpo.credit import Batch, Credit, Floats, Scale, split_like, within_groups, within_labels


@configured
class BEACON:
    """The episode's return among its group, plus how near the step is to the next milestone among its segment."""

    step_weight: float = Field(1.0, ge=0)
    """w, the weight of the step's part; 0 leaves the episode's alone."""
    scale: Scale = "none"
    """Divides both differences: nothing, or the standard deviation of the set."""
    discount: float = Field(0.99, gt=0, le=1)
    """Gamma, by which a milestone counts less for each step before it."""

    needs: ClassVar[frozenset[str]] = frozenset()
    shared: ClassVar[Shared] = {"discount": "discount"}
    renamed: ClassVar[Shared] = {"decay": "discount"}

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        how = partial(compared, scale=self.scale)
        whole = within_groups(batch, batch.returns(), how)
        shaped = [towards_milestones(each.rewards, self.discount) for each in batch.trajectories]
        segments = [(each.group, k) for each in batch.trajectories for k in milestones_before(each.rewards)]
        steps = split_like(within_labels(segments, np.concatenate(shaped), how), shaped)
        return Credit.of([e + self.step_weight * s for e, s in zip(whole, steps, strict=True)])


def milestones_before(rewards: Floats) -> list[int]:
    """T numbers of the steps before each one that had a positive reward."""
    return [0, *np.cumsum(rewards[:-1] > 0).tolist()]


def towards_milestones(rewards: Floats, decay: float) -> Floats:
    """Return (T,) the next positive reward, discounted by the steps until it; 0 if none follows."""
    found, ahead = np.zeros(len(rewards)), 0.0
    for t in range(len(rewards) - 1, -1, -1):
        ahead = float(rewards[t]) if rewards[t] > 0 else decay * ahead
        found[t] = ahead
    return found
