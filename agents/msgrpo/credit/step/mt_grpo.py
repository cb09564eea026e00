"""MT-GRPO: the episode's normalised return, plus the turn's normalised reward (arXiv 2505.11821).

``A_it = z_g(R_i) + lam z(r_it)``, the second z being over the rewards that the group's episodes were paid at the same
t; ``lam = 1``. SiliangZeng/Multi-Turn-RL-Agent has two turns, a tool call and an answer, with a reward each.

Our reading: the turn's reward is the reward of the step, and z is taken over the episodes that are alive at t.
"""

from typing import ClassVar

import numpy as np
from pydantic import Field

from agents.msgrpo.credit.arithmetic import steps_by_time, within, within_groups
from agents.msgrpo.credit.batch import Batch, Credit, standardised
from agents.msgrpo.plugins import Shared, configured


@configured
class MTGRPO:
    """The group-normalised return plus the step's reward among the group's at the same time."""

    turn_weight: float = Field(1.0, ge=0)
    """lam, the weight of the step's reward."""
    discount: float = Field(1.0, gt=0, le=1)
    """Discount per step in an episode's return."""

    needs: ClassVar[frozenset[str]] = frozenset()
    shared: ClassVar[Shared] = {"discount": "discount"}

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        whole = within_groups(batch, batch.returns(self.discount), standardised)
        turns = within(steps_by_time(batch), [each.rewards for each in batch.trajectories], standardised)
        return Credit.of([e + self.turn_weight * turn for e, turn in zip(whole, turns, strict=True)])
