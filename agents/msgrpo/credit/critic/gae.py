"""Generalised advantage estimation (arXiv 1506.02438, section 3)."""

import numpy as np

from agents.msgrpo.credit.batch import Floats


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
