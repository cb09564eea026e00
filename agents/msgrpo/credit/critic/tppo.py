"""T-PPO's EGAE: an episode that was cut off is worth after the cut what it was worth before it.

As :mod:`agents.msgrpo.credit.critic.ppo_turn`, but where the step limit ended an episode, ``V(s_T) = V(s_{T-1})`` in
place of 0, so the last ``delta = r + (gamma - 1) V`` (arXiv 2506.15050, extended GAE).

Our reading: the paper cuts long responses and estimates token by token; here episodes are cut at the horizon and turns
are estimated. Its separate filtering of tokens for policy and critic is missing, because no formula of it was found.
"""

from agents.msgrpo.credit.batch import Batch, Floats
from agents.msgrpo.credit.critic.gae import turn_advantages
from agents.msgrpo.credit.critic.ppo_turn import PPOTurn
from agents.msgrpo.plugins import configured


@configured
class TPPO(PPOTurn):
    """GAE over turns that goes on behind the cut of an episode."""

    def advantages(self, batch: Batch) -> list[Floats]:
        return turn_advantages(batch, self.gamma, self.lam, cut_goes_on=True)
