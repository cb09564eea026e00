"""iStar: rewards of steps from a reward model that learns beside the policy which episodes were better (2509.19199).

The reward model began as the policy. By how much likelier it takes a response to be than the policy does, that is its
reward of the step (:mod:`research.methods.reward_model`): ::

    r_it = q_it / max |q|
    A_it = (R_i - mean_j R_j) + w (r_it - mean_js r_js)

where the means are over the group's other episodes, and over its other steps. What isn't in the paper is as in the
authors' public code and scripts: leave-one-out baselines, w 1, beta 0.05, rewards divided by the batch's largest and
told before the reward model's step of the iteration, which is one, at twice the policy's learning rate.

Our reading: of two episodes of a group the one with the higher return is the better one, if the code has those that
return more than 0 and the others; the baseline of a step is the mean of all other steps of the group, as in the paper,
where the code has the first step of each episode; and the loss reaches the reward model's weights, if the code
computes it on detached scores. Steps that the episodes of a tree share count once in each of them.
"""

from functools import partial
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from agents.msgrpo import compared, configured
from agents.msgrpo.credit import (
    Batch,
    ByReturn,
    Credit,
    Floats,
    Preferences,
    same,
    within_groups,
    within_steps,
)

_others = partial(compared, baseline="others")


@configured
class IStar(ByReturn):
    """The episode's return less that of its group's others, plus the same of rewards that a reward model has learnt."""

    step_weight: float = Field(1.0, ge=0)
    """w, the weight of the steps' rewards; 0 leaves the episode's return alone."""
    beta: float = Field(0.05, gt=0)
    """What a log-ratio is multiplied by to be a reward, in the loss of the reward model."""
    rate: float = Field(2.0, gt=0)
    """The reward model's learning rate, as a multiple of the policy's. One that is slower than the policy stays behind,
    and its rewards pull the policy back to where it began."""

    needs: ClassVar[frozenset[str]] = frozenset({"reward_model"})

    def beside(self, scorer: Any, config: Any, processes: Any, packing: str) -> Any:
        """Make the reward model."""
        from research.methods.reward_model import RewardModel

        return RewardModel(scorer, config, processes, packing=packing, rate=self.rate)

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        returns = batch.returns(self.discount)
        ratios = [_known(each.log_ratios) for each in batch.trajectories]
        largest = float(np.abs(np.concatenate(ratios)).max())
        steps = within_steps(batch, "group", [ratio / (largest or 1.0) for ratio in ratios], _others)
        whole = within_groups(batch, returns, _others)
        pairs = [
            (i, j)
            for places in batch.groups.values()
            for i in places
            for j in places
            if returns[i] > returns[j] and not same(returns[i : i + 1], returns[j])[0]
        ]
        advantages = [e + self.step_weight * s for e, s in zip(whole, steps, strict=True)]
        return Credit.of(
            advantages,
            metrics={"reward_log_ratio": largest, "preferences": float(len(pairs))},
            preferences=Preferences(pairs, self.beta),
        )


def _known(ratios: Floats | None) -> Floats:
    if ratios is None:
        raise ValueError('the trajectory has no log_ratios; a method that uses them says needs = {"reward_model"}')
    return ratios
