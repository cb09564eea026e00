"""T-PPO's EGAE: an episode that was cut off is worth after the cut what it was worth before it.

As :mod:`agents.msgrpo.credit.critic.ppo_turn`, but where the step limit ended an episode, ``V(s_T) = V(s_{T-1})`` in
place of 0, so the last ``delta = r + (gamma - 1) V`` (arXiv 2506.15050, extended GAE).

Our reading: the paper cuts long responses and estimates token by token; here episodes are cut at the horizon and turns
are estimated. Its separate filtering of tokens for policy and critic is missing, because no formula of it was found.
"""

from typing import ClassVar

import numpy as np
from pydantic import Field

from agents.msgrpo.credit.batch import Batch, Credit, Heads
from agents.msgrpo.credit.critic.gae import turn_advantages
from agents.msgrpo.credit.critic.ppo_turn import credit_of_turns
from agents.msgrpo.plugins import configured


@configured
class TPPO:
    """GAE over turns that goes on behind the cut of an episode."""

    gamma: float = Field(1.0, gt=0, le=1)
    """Discount per step."""
    lam: float = Field(1.0, ge=0, le=1)
    """GAE's lambda: 0 trusts the critic's next value, 1 the rewards up to the cut."""
    whiten: bool = True
    """Make the batch's advantages have mean 0 and standard deviation 1."""

    needs: ClassVar[frozenset[str]] = frozenset({"values"})
    heads: ClassVar[Heads] = {"state": "step"}

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        advantages = turn_advantages(batch, self.gamma, self.lam, cut_goes_on=True)
        return credit_of_turns(batch, advantages, whiten=self.whiten)
