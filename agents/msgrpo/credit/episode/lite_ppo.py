"""Lite PPO: the mean of the group, the standard deviation of the batch (arXiv 2508.08221).

``A_i = (R_i - mean_g R) / (std_batch(R) + eps)`` for all steps of episode i. The standard deviation is that of the raw
returns of the whole batch, in which every episode counts once, so a group in which little differs isn't blown up. TRL
has it as ``scale_rewards = "batch"``, and the default of ``eps`` from there. It goes with the mean over tokens.
"""

from typing import ClassVar

import numpy as np
from pydantic import Field

from agents.msgrpo.credit.arithmetic import centred, within_groups
from agents.msgrpo.credit.batch import Batch, Credit
from agents.msgrpo.plugins import Shared, configured


@configured
class LitePPO:
    """The return less its group's mean, divided by the standard deviation of all returns."""

    eps: float = Field(1e-4, gt=0)
    """Added to the standard deviation."""
    discount: float = Field(1.0, gt=0, le=1)
    """Discount per step in an episode's return."""

    needs: ClassVar[frozenset[str]] = frozenset()
    shared: ClassVar[Shared] = {"discount": "discount"}

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        returns = batch.returns(self.discount)
        spread = float(returns.std(ddof=1)) if len(returns) > 1 else 0.0
        return Credit.per_episode(batch, within_groups(batch, returns, centred) / (spread + self.eps))
