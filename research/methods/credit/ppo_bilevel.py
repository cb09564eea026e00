"""Bi-level GAE: first over turns, then over the tokens of each turn (RAGEN, arXiv 2504.20073, and its public code).

1. Over turns, with the value before each response's last token, ``V_t``: GAE with ``discount`` and ``lam`` gives
   ``A_t`` and ``Ret_t = A_t + V_t``.
2. Inside each response: GAE over tokens with ``token_discount`` and ``lam``, if no token but the last is rewarded
   and the last one with ``Ret_t``; nothing is carried from one response to the next. So the last token's advantage is
   ``A_t``.

Advantages are whitened over all tokens. The critic learns ``A + V`` of every token. The public code finds the ends of
turns if a reward isn't 0, so that unrewarded turns merge; here every response is a turn.
"""

from typing import ClassVar

import numpy as np
from pydantic import Field

from agents.msgrpo import Shared, configured
from agents.msgrpo.credit import Batch, Credit, Floats, Heads, Trajectory, gae, whitened


@configured
class PPOBilevel:
    """GAE over turns, then over the tokens of each response, with a value for every token."""

    discount: float = Field(0.95, gt=0, le=1)
    """Discount per turn."""
    token_discount: float = Field(1.0, gt=0, le=1)
    """Discount per token within a response."""
    lam: float = Field(1.0, ge=0, le=1)
    """GAE's lambda, of turns and of tokens."""
    whiten: bool = True
    """Make the advantages of the batch's tokens have mean 0 and standard deviation 1."""

    needs: ClassVar[frozenset[str]] = frozenset({"values"})
    shared: ClassVar[Shared] = {"discount": "discount"}
    renamed: ClassVar[Shared] = {"gamma_turn": "discount", "gamma": "token_discount"}
    heads: ClassVar[Heads] = {"token": "token"}

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        each = [self._tokens(trajectory) for trajectory in batch.trajectories]
        targets = [
            [own + values for own, values in zip(advantages, trajectory.head_values["token"], strict=True)]
            for advantages, trajectory in zip(each, batch.trajectories, strict=True)
        ]
        if self.whiten:
            flat = iter(whitened([own for advantages in each for own in advantages]))
            each = [[next(flat) for _ in advantages] for advantages in each]
        return Credit.of(each, value_targets={"token": targets})

    def _tokens(self, trajectory: Trajectory) -> list[Floats]:
        """T arrays (K_t,) of advantages."""
        values = trajectory.head_values["token"]
        at_ends = np.array([own[-1] for own in values])
        returns = gae(trajectory.rewards, at_ends, 0.0, self.discount, self.lam) + at_ends
        result = []
        for own, last in zip(values, returns.tolist(), strict=True):
            rewards = np.zeros(len(own))
            rewards[-1] = last
            result.append(gae(rewards, np.asarray(own), 0.0, self.token_discount, self.lam))
        return result
