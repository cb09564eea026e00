"""PPO whose actions are whole turns (Turn-PPO, arXiv 2512.17008): a critic values prompts, GAE credits responses.

``delta_t = r_t + gamma V(s_{t+1}) - V(s_t)``, ``A_t = sum_l (gamma lam)^l delta_{t+l}`` (GAE, arXiv 1506.02438), with
one value per turn, at the last token of its prompt; nothing follows the last step, whether the game ended or the step
limit cut it off. With gamma = lam = 1, the defaults of RAGEN (arXiv 2504.20073), it is ``G_t - V(s_t)``. The critic
learns ``A_t + V(s_t)``, before whitening.

Our reading: advantages are whitened over the steps of the batch, each step counting once however long its response is.
"""

from typing import ClassVar

import numpy as np
from pydantic import Field

from agents.msgrpo.credit.arithmetic import whitened
from agents.msgrpo.credit.batch import Batch, Credit, Floats, Heads, returns_to_go
from agents.msgrpo.credit.compared import ByReturn
from agents.msgrpo.plugins import Shared, configured


@configured
class PPOTurn(ByReturn):
    """GAE over turns with a critic, whitened over the batch."""

    lam: float = Field(1.0, ge=0, le=1)
    """GAE's lambda: 0 trusts the critic's next value, 1 the return."""
    whiten: bool = True
    """Make the batch's advantages have mean 0 and standard deviation 1."""
    cut_goes_on: bool = False
    """An episode that the step limit cut off is worth after the cut what it was worth at its last step, and not 0."""

    needs: ClassVar[frozenset[str]] = frozenset({"values"})
    renamed: ClassVar[Shared] = {"gamma": "discount"}
    heads: ClassVar[Heads] = {"state": "step"}

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        advantages: list[Floats] = []
        targets: list[Floats] = []
        for each in batch.trajectories:
            values = each.values
            if values is None:
                raise ValueError(
                    'the trajectory has no values; a method that uses them declares needs = frozenset({"values"})'
                )
            after = float(values[-1]) if self.cut_goes_on and not each.terminated else 0.0
            own = gae(each.rewards, values, after, self.discount, self.lam)
            advantages.append(own)
            targets.append(own + values)
        return Credit.of(whitened(advantages) if self.whiten else advantages, value_targets={"state": targets})


def gae(rewards: Floats, values: Floats, after: float, gamma: float, lam: float) -> Floats:
    """Return (T,) ``A_t = sum_{l >= 0} (gamma lam)^l delta_{t+l}`` with ``delta_t = r_t + gamma V_{t+1} - V_t``.

    GAE (arXiv 1506.02438, section 3). ``values`` are (T,), before each of (T,) rewards, and
    ``after`` is ``V_T``, 0 if nothing follows. ``lam`` 0 trusts the values, 1 the rewards: ``A_t = G_t - V_t``.
    """
    return returns_to_go(rewards + gamma * np.append(values[1:], after) - values, gamma * lam)
