"""MT-GRPO: the episode's normalised return, plus the turn's normalised reward (arXiv 2505.11821).

``A_it = z_g(R_i) + lam z(r_it)``, the second z being over the rewards that the group's episodes were paid at the same
t; ``lam = 1``. SiliangZeng/Multi-Turn-RL-Agent has two turns, a tool call and an answer, with a reward each.

Our reading: the turn's reward is the reward of the step, and z is taken over the episodes that are alive at t.
"""

import numpy as np
from pydantic import Field

from agents.msgrpo import configured
from agents.msgrpo.credit import Batch, ByReturn, Credit, standardised, within_groups, within_steps


@configured
class MTGRPO(ByReturn):
    """The group-normalised return plus the step's reward among the group's at the same time."""

    turn_weight: float = Field(1.0, ge=0)
    """lam, the weight of the step's reward."""

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        whole = within_groups(batch, batch.returns(self.discount), standardised)
        turns = within_steps(batch, "time", [each.rewards for each in batch.trajectories], standardised)
        return Credit.of([e + self.turn_weight * turn for e, turn in zip(whole, turns, strict=True)])
