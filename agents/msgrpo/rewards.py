"""Reward rules: what each step is paid in training beside, or in place of, the game's own reward.

A rule runs between the rollouts and the group filter. The filter and what follows it learn from what the rule pays;
task samplers, the metrics ``return`` and ``success``, and the scores of evaluations keep to the game. Penalties of
invalid responses are charged on top of either.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol

import numpy as np

from agents.msgrpo.credit.batch import Batch, Floats
from agents.msgrpo.errors import ConfigError
from agents.msgrpo.filters import share_of_equals
from agents.msgrpo.plugins import OWN, Method, Registry


class Reward(Method, Protocol):
    """A rule of what steps are paid."""

    def pay(self, batch: Batch) -> Sequence[Floats]:
        """Return N arrays (T_i,), the rule's payment for each step.

        ``rewards`` of the batch's trajectories are the game's, without format penalties. Evaluations, which
        a rule with ``evaluates`` pays as well, have no ``batch.rollouts``, and each episode is a group of its own.
        """


class ByGame:
    """Pays nothing of its own: the rewards are the game's."""

    evaluates: ClassVar[bool] = False

    def pay(self, batch: Batch) -> list[Floats]:
        return [np.zeros(len(each)) for each in batch.trajectories]


def rewarded(batch: Batch, rule: Reward, config: Any) -> tuple[Batch, Mapping[str, float]]:
    """Return the batch with the rewards of training by a run's rule and settings, and what it paid, for the log."""
    if isinstance(rule, ByGame):
        return batch, {}
    fines = [config.format_penalty * ~each.valid for each in batch.trajectories]
    pairs = zip(batch.trajectories, fines, strict=True)
    earned = [replace(each, rewards=each.rewards + fine) for each, fine in pairs]
    paid = [np.asarray(each, dtype=np.float64) for each in rule.pay(replace(batch, trajectories=earned))]
    if [each.shape for each in paid] != [(len(each),) for each in earned] or not np.isfinite(
        np.concatenate(paid)
    ).all():
        raise ConfigError(
            f"reward = {config.reward!r}: pay returned {paid!r:.200}; accepted is an array for each of the "
            f"{len(earned)} trajectories, with a finite number for each of its steps"
        )
    mode = rule.reward_mode if config.reward_mode == OWN else config.reward_mode
    new = [
        replace(
            each,
            rewards=(each.rewards if mode == "add" else 0.0) + config.reward_weight * own - fine,
            earned=each.rewards,
        )
        for each, own, fine in zip(earned, paid, fines, strict=True)
    ]
    result = replace(batch, trajectories=new)
    told = {"reward": per_episode(paid), "zero_advantage_groups": share_of_equals(result)}
    return result, told | dict(rule.metrics)


def per_episode(paid: Sequence[Floats]) -> float:
    """Return the mean over episodes of what their steps were paid together."""
    return float(np.mean([each.sum() for each in paid]))


REWARDS: Registry[Reward] = Registry(
    "reward", {"game": "agents.msgrpo.rewards:ByGame", "length": "agents.msgrpo.credit.methods:Length"}
)

register_reward = REWARDS.register
