"""Credit: what each step of an episode gets of what the episode was paid.

A method is one file and one name. It has

* ``needs``, a frozenset of words of :data:`NEEDS`: what it uses besides states, rewards and validity, which are always
  there. What no method needs isn't computed;
* ``assign(batch, rng) -> Credit``;
* settings, which are its fields (:func:`agents.msgrpo.plugins.configured` checks and documents them);
* if it learns something from iteration to iteration, ``state_dict()`` and ``load_state_dict(state)`` with plain data,
  which goes into checkpoints.

``register("name")`` adds one from outside; ``MSGRPOConfig(credit="name")`` uses it.
"""

from typing import ClassVar, Protocol

import numpy as np

from agents.msgrpo.credit.batch import NEEDS, Batch, Credit, Floats, FreshRollouts, Segment, Start, Trajectory
from agents.msgrpo.plugins import Registry, Variant


class CreditMethod(Protocol):
    """A method of credit assignment."""

    needs: ClassVar[frozenset[str]]

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        """The advantages of a batch, and what its episodes are drawn by. ``rng`` is the method's own randomness."""


# baselines for each time step; its eps is its own, not the run's
_RETURNS_TO_GO = {"spread": "to_go", "among": "time", "baseline": "others", "scale": "none", "eps": 1e-6}

METHODS: Registry[CreditMethod] = Registry(
    "credit",
    {
        "msgrpo": "agents.msgrpo.credit.compared:Compared",
        "rloo": Variant("msgrpo", {"baseline": "others", "scale": "none"}),
        "dapo": "agents.msgrpo.credit.episode.dapo:DAPO",
        "dr_grpo": Variant("msgrpo", {"baseline": "mean", "scale": "none"}),
        "lite_ppo": Variant("msgrpo", {"baseline": "mean", "scale": "returns_std", "eps": 1e-4}),
        "riskpo": "agents.msgrpo.credit.episode.riskpo:RiskPO",
        "adora": "agents.msgrpo.credit.episode.adora:ADORA",
        "rae": "agents.msgrpo.credit.episode.rae:RAE",
        "rtg": Variant("msgrpo", _RETURNS_TO_GO),
        "gigpo": "agents.msgrpo.credit.step.gigpo:GiGPO",
        "hgpo": "agents.msgrpo.credit.step.hgpo:HGPO",
        "g2po": "agents.msgrpo.credit.step.g2po:G2PO",
        "gagpo": "agents.msgrpo.credit.step.gagpo:GAGPO",
        "beacon": "agents.msgrpo.credit.step.beacon:BEACON",
        "salt": "agents.msgrpo.credit.step.salt:SALT",
        "mt_grpo": "agents.msgrpo.credit.step.mt_grpo:MTGRPO",
        "marshal": "agents.msgrpo.credit.step.marshal:MARSHAL",
        "tree_grpo": "agents.msgrpo.credit.step.trees:TreeGRPO",
        "at2po": "agents.msgrpo.credit.step.trees:AT2PO",
        "ppo_turn": "agents.msgrpo.credit.critic.ppo_turn:PPOTurn",
        "hiper": "agents.msgrpo.credit.critic.hiper:HiPER",
        "istar": "agents.msgrpo.credit.critic.istar:IStar",
        "ppo_bilevel": "agents.msgrpo.credit.critic.ppo_bilevel:PPOBilevel",
        "tppo": Variant("ppo_turn", {"cut_goes_on": True}),
        "vine": "agents.msgrpo.credit.step.vine:Vine",
        "choice": "agents.msgrpo.credit.step.choice:Choice",
        "empg": "agents.msgrpo.credit.step.empg:EMPG",
        "igpo": "agents.msgrpo.credit.step.igpo:IGPO",
        "hcapo": "agents.msgrpo.credit.step.hcapo:HCAPO",
        "direct_apo": Variant("vine", {"baseline": "mean", "rollouts": 16}),
    },
)

register = METHODS.register

__all__ = [
    "METHODS",
    "NEEDS",
    "Batch",
    "Credit",
    "CreditMethod",
    "Floats",
    "FreshRollouts",
    "Segment",
    "Start",
    "Trajectory",
    "register",
]
