"""PPO whose actions are whole turns: a critic tells what each prompt is worth, and GAE credits each response.

``delta_t = r_t + gamma V(s_{t+1}) - V(s_t)``, ``A_t = sum_l (gamma lam)^l delta_{t+l}`` (GAE, arXiv 1506.02438), with
one value per turn, at the last token of its prompt; nothing follows the last step, whether the game ended or the step
limit cut it off. With gamma = lam = 1, the defaults of RAGEN (arXiv 2504.20073), it is ``G_t - V(s_t)``. The critic
learns ``A_t + V(s_t)``, before whitening.

Our reading: advantages are whitened over the steps of the batch, each step counting once however long its response is.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from pydantic import Field

from agents.msgrpo.credit.arithmetic import whitened
from agents.msgrpo.credit.batch import Batch, Credit, Floats, Heads
from agents.msgrpo.credit.critic.gae import turn_advantages, values_of
from agents.msgrpo.plugins import configured


@configured
class PPOTurn:
    """GAE over turns with a critic, whitened over the batch."""

    gamma: float = Field(1.0, gt=0, le=1)
    """Discount per step."""
    lam: float = Field(1.0, ge=0, le=1)
    """GAE's lambda: 0 trusts the critic's next value, 1 the return."""
    whiten: bool = True
    """Make the batch's advantages have mean 0 and standard deviation 1."""

    needs: ClassVar[frozenset[str]] = frozenset({"values"})
    heads: ClassVar[Heads] = {"state": "step"}

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        return credit_of_turns(batch, turn_advantages(batch, self.gamma, self.lam), whiten=self.whiten)


def credit_of_turns(batch: Batch, advantages: Sequence[Floats], *, whiten: bool) -> Credit:
    """Credit from (T_i,) advantages of each trajectory, with ``A_t + V(s_t)`` for the critic to learn."""
    pairs = zip(advantages, batch.trajectories, strict=True)
    targets = [own + values_of(trajectory) for own, trajectory in pairs]
    return Credit.of(whitened(advantages) if whiten else advantages, value_targets={"state": targets})
