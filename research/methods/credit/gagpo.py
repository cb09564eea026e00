"""GAGPO: generalised advantage estimation with the group's own means as values (arXiv 2605.13217).

Every visited state has the value ``V(s)``, the mean of the discounted ``G`` over the group's visits of it; there is no
critic: ::

    delta_it = r_it + gamma V(s_i,t+1) - V(s_it)
    A_it     = z over the group's steps of sum_l (gamma lam)^l delta_i,t+l

The paper adds no advantage of the whole episode, and its importance ratio is one for each step's response, normalised
by length, which is the surrogate ``gspo``.

Our reading, of descriptions of the paper, which has no public code: a state is the state of the game, nothing follows
an episode's last step, z takes all steps of the group together, and the loss is a mean over responses, as ``gspo``'s
is, since a ratio for each of them weighs none by its length. The paper's discount and ``lam`` we couldn't find out;
0.95 is GiGPO's discount and the customary ``lam``.
"""

from typing import ClassVar

import numpy as np
from pydantic import Field

from agents.msgrpo import Shared, configured
from agents.msgrpo.credit import Batch, Credit, averaged, gae, standardised, within_steps


@configured
class GAGPO:
    """Advantages estimated from the mean returns of visited states, standardised within the group."""

    lam: float = Field(0.95, ge=0, le=1)
    """Lambda: 0 looks one step ahead, to the next state's mean; 1 takes the return-to-go less the state's mean."""
    discount: float = Field(0.95, gt=0, le=1)
    """Discount per step of returns-to-go and of the next state's value."""

    needs: ClassVar[frozenset[str]] = frozenset()
    shared: ClassVar[Shared] = {"discount": "discount"}

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        values = within_steps(batch, "state", batch.returns_to_go(self.discount), averaged)
        estimated = [
            gae(trajectory.rewards, value, 0.0, self.discount, self.lam)
            for trajectory, value in zip(batch.trajectories, values, strict=True)
        ]
        return Credit.of(within_steps(batch, "group", estimated, standardised))
