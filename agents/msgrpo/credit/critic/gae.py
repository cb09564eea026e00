"""Generalised advantage estimation (arXiv 1506.02438, section 3), and what methods with a critic have in common."""

import numpy as np

from agents.msgrpo.credit.batch import Batch, Floats, Trajectory


def gae(rewards: Floats, values: Floats, after: float, gamma: float, lam: float) -> Floats:
    """(T,) ``A_t = sum_{l >= 0} (gamma lam)^l delta_{t+l}`` with ``delta_t = r_t + gamma V_{t+1} - V_t``.

    Args:
        rewards: (T,)
        values: (T,) before each reward.
        after: ``V_T``, the value after the last reward; 0 where nothing follows.
        gamma: discount per reward.
        lam: 0 trusts the values (one reward, then the next value), 1 the rewards: ``A_t = G_t - V_t``, up to ``after``.
    """
    following = np.append(values[1:], after)
    deltas = rewards + gamma * following - values
    advantages = np.empty_like(deltas)
    total = 0.0
    for t in range(len(deltas) - 1, -1, -1):
        total = float(deltas[t]) + gamma * lam * total
        advantages[t] = total
    return advantages


def values_of(trajectory: Trajectory) -> Floats:
    """(T,) the critic's values.

    Raises:
        ValueError: there are none.
    """
    if trajectory.values is None:
        raise ValueError('the trajectory has no values; a method that uses them says needs = frozenset({"values"})')
    return trajectory.values


def turn_advantages(batch: Batch, gamma: float, lam: float, *, cut_goes_on: bool = False) -> list[Floats]:
    """(T_i,) for each trajectory: GAE with one reward and one value per step.

    ``cut_goes_on``: an episode that the step limit cut off is worth after it what it was worth at its last step, in
    place of 0.
    """
    result = []
    for each in batch.trajectories:
        values = values_of(each)
        after = float(values[-1]) if cut_goes_on and not each.terminated else 0.0
        result.append(gae(each.rewards, values, after, gamma, lam))
    return result
