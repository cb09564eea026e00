"""MS-GRPO: every step gets the whole episode's return, normalised within its group.

``A_i = (R_i - mean_g R) / (std_g R + eps)`` for all steps of episode i (arXiv 2508.10839, section 4; the group-relative
advantage of GRPO over the cumulative rewards of whole episodes).
"""

from typing import ClassVar, Literal

import numpy as np

from agents.msgrpo.credit.advantages import group_advantages
from agents.msgrpo.credit.batch import Batch, Credit
from agents.msgrpo.plugins import Shared, configured


@configured
class MSGRPO:
    """The whole episode's group-normalised return for every step."""

    baseline: Literal["mean", "leave_one_out", "none"] = "mean"
    """Subtracted from a return: its group's mean, the mean of the group's other episodes, or nothing."""
    scale: Literal["group_std", "batch_std", "none"] = "group_std"
    """Divides the difference: the sample standard deviation of the group, that of all differences, or 1."""
    eps: float = 1e-6
    """Added to the standard deviation."""
    discount: float = 1.0
    """Discount per step in an episode's return."""

    needs: ClassVar[frozenset[str]] = frozenset()
    shared: ClassVar[Shared] = {
        "baseline": "advantage_baseline",
        "scale": "advantage_scale",
        "eps": "advantage_eps",
        "discount": "discount",
    }

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        groups = [trajectory.group for trajectory in batch.trajectories]
        returns = batch.returns(self.discount)
        advantages = group_advantages(returns, groups, baseline=self.baseline, scale=self.scale, eps=self.eps)
        return Credit.per_episode(batch, advantages)
