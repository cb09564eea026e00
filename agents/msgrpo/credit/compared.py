"""Credit by comparison: each value of a set less a baseline, divided by a scale, and spread over the steps.

MS-GRPO gives every step the whole episode's return, normalised within its group: ``A_i = (R_i - mean_g R) / (std_g R +
eps)`` for all steps of episode i (arXiv 2508.10839, section 4). Four choices make it, and other ones make other
methods: which values are compared (``among``), what is taken off them (``baseline``), what divides the difference
(``scale``), and whether all steps of an episode get what its return is worth or each what its own return-to-go is
(``spread``). Published choices are lines of :data:`agents.msgrpo.credit.METHODS`.
"""

from functools import partial
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from agents.msgrpo.credit.arithmetic import SETS, Baseline, group_advantages, labels_of_steps, split_like
from agents.msgrpo.credit.batch import Batch, Credit
from agents.msgrpo.plugins import Shared, configured


@configured
class ByReturn:
    """A method that needs nothing but what was paid, discounted as the run says."""

    discount: float = Field(1.0, gt=0, le=1)
    """Discount per step in a return."""

    needs: ClassVar[frozenset[str]] = frozenset()
    shared: ClassVar[Shared] = {"discount": "discount"}


@configured
class Compared(ByReturn):
    """What an episode, or a step, is worth beside the others of its set."""

    among: Literal["group", "time", "state", "state_and_steps_left"] = "group"
    """The set, always within a group: all of it, its steps at the same time, in the same state, or in the same state
    with as many rounds left. An episode stands where its first step does."""
    baseline: Baseline = "mean"
    """Subtracted from a value: the mean of its set; the mean of the set's other values, if one that is alone is
    worth 0 (leave_one_out) or keeps its value (others); or nothing."""
    scale: Literal["none", "group_std", "batch_std", "returns_std"] = "group_std"
    """Divides the difference: nothing (none), the sample standard deviation of the set (group_std), that of all
    differences (batch_std), or that of all values (returns_std)."""
    eps: float = Field(1e-6, ge=0)
    """Added to the standard deviation."""
    spread: Literal["episode", "to_go"] = "episode"
    """What is compared: returns of episodes, whose advantages all of their steps get, or each step's return-to-go."""

    shared: ClassVar[Shared] = {
        "baseline": "advantage_baseline",
        "scale": "advantage_scale",
        "eps": "advantage_eps",
        **ByReturn.shared,
    }

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        how = partial(group_advantages, baseline=self.baseline, scale=self.scale, eps=self.eps)
        if self.spread == "episode":
            labels = [(each.group, SETS[self.among](each, 0)) for each in batch.trajectories]
            return Credit.per_episode(batch, how(batch.returns(self.discount), labels))
        values = batch.returns_to_go(self.discount)
        return Credit.of(split_like(how(np.concatenate(values), labels_of_steps(batch, self.among)), values))
