"""iStar: rewards of steps from a reward model that learns beside the policy which episodes were better."""

from functools import partial
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from agents.msgrpo import compared, configured
from agents.msgrpo.credit import Batch, ByReturn, Credit, Preferences, same, within_groups, within_steps


@configured
class IStar(ByReturn):
    """The episode's return less that of its group's others, plus the same of rewards that a reward model has learnt.

    By how much likelier the reward model takes a response to be than the policy does is its reward ``q_it`` of the step
    (arXiv 2509.19199 and the authors' public code): ::

        A_it = (R_i - mean_j R_j) + w (r_it - mean_js r_js),   r_it = q_it / max |q|

    with means over the group's other episodes, and over its other steps. Our reading: of two episodes of a group the
    one with the higher return is the better one, and the loss reaches the reward model's weights.
    """

    step_weight: float = Field(1.0, ge=0)
    """w, the weight of the steps' rewards; 0 leaves the episode's return alone."""
    beta: float = Field(0.05, gt=0)
    """What a log-ratio is multiplied by to be a reward, in the loss of the reward model."""
    rate: float = Field(2.0, gt=0)
    """The reward model's learning rate, as a multiple of the policy's. One that is slower than the policy stays behind,
    and its rewards pull the policy back to its beginning."""

    needs: ClassVar[frozenset[str]] = frozenset({"reward_model"})

    def beside(self, scorer: Any, config: Any, processes: Any, packing: str) -> Any:
        from research.methods.reward_model import RewardModel

        return RewardModel(scorer, config, processes, packing=packing, rate=self.rate)

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        returns, others = batch.returns(self.discount), partial(compared, baseline="others")
        ratios = [each.log_ratios for each in batch.trajectories if each.log_ratios is not None]
        if len(ratios) < len(batch):
            raise ValueError('the trajectory has no log_ratios; a method that uses them says needs = {"reward_model"}')
        largest = float(np.abs(np.concatenate(ratios)).max())
        steps = within_steps(batch, "group", [ratio / (largest or 1.0) for ratio in ratios], others)
        whole = within_groups(batch, returns, others)
        pairs = [
            (i, j)
            for places in batch.groups.values()
            for i in places
            for j in places
            if returns[i] > returns[j] and not same(returns[i : i + 1], returns[j])[0]
        ]
        return Credit.of(
            [e + self.step_weight * s for e, s in zip(whole, steps, strict=True)],
            metrics={"reward_log_ratio": largest, "preferences": float(len(pairs))},
            preferences=Preferences(pairs, self.beta),
        )
