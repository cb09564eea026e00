"""GiGPO: the episode among its group, plus the step among all visits of its state (arXiv 2505.10978).

``A_it = E_i + w S_it`` with ``E_i = R_i - mean_g R``, in which every episode counts once, and ``S_it = G_it`` less the
mean of G over all visits of the same state in the group, in any episode and at any time; 0 for a state that was
visited once. ``G_it`` is discounted by 0.95, ``R_i`` is not, and ``w = 1``: the defaults of the authors' code
(``gigpo/core_gigpo.py`` in langfengQ/DrMAS). With ``scale = "group_std"`` both parts are divided by the sample standard
deviation of their set.

Our reading: a state is the state of the game. ``same = "state_and_steps_left"`` only compares visits that also have the
same number of rounds left, as what can still be won depends on that.
"""

from functools import partial
from typing import Literal

import numpy as np
from pydantic import Field

from agents.msgrpo.credit.arithmetic import Scale, compared, within_groups, within_steps
from agents.msgrpo.credit.batch import Batch, Credit
from agents.msgrpo.credit.compared import ByReturn
from agents.msgrpo.plugins import configured


@configured
class GiGPO(ByReturn):
    """The episode's return among its group, plus the step's return-to-go among the visits of its state."""

    step_weight: float = Field(1.0, ge=0)
    """w, the weight of the step's part; 0 leaves the episode's alone."""
    episode_weight: float = Field(1.0, ge=0)
    """The weight of the episode's part, 1 in the paper; 0 leaves the step's alone."""
    scale: Scale = "none"
    """Divides both differences: nothing, or the standard deviation of the set."""
    same: Literal["state", "state_and_steps_left"] = "state"
    """Which visits are compared: those of the same state, or of the same state with as many rounds left."""
    discount: float = Field(0.95, gt=0, le=1)
    """Discount per step of returns-to-go."""

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        how = partial(compared, scale=self.scale)
        whole = within_groups(batch, batch.returns(), how)
        steps = within_steps(batch, self.same, batch.returns_to_go(self.discount), how)
        return Credit.of([self.episode_weight * e + self.step_weight * s for e, s in zip(whole, steps, strict=True)])
