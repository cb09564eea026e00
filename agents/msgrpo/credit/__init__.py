"""Credit: the part of what an episode was paid that each of its steps gets.

A method has ``needs``, a frozenset of words of :data:`NEEDS` (what it uses besides states, rewards and validity),
``assign(batch, rng) -> Credit``, its settings as fields, and what else :class:`agents.msgrpo.plugins.Method` names.
"""

from typing import ClassVar, Protocol

import numpy as np

from agents.msgrpo.credit.arithmetic import (
    How,
    Scale,
    averaged,
    same,
    split_like,
    standardised,
    whitened,
    within_groups,
    within_labels,
    within_steps,
)
from agents.msgrpo.credit.batch import (
    NEEDS,
    Batch,
    Bools,
    Credit,
    Floats,
    FreshRollouts,
    Heads,
    Preferences,
    Segment,
    Start,
    Step,
    StepCredit,
    Trajectory,
    returns_to_go,
)
from agents.msgrpo.credit.fresh import local_policy, refuse_history, rounds_before, task_of
from agents.msgrpo.credit.methods import ByReturn, gae
from agents.msgrpo.plugins import Method, Registry, Variant


class CreditMethod(Method, Protocol):
    """A method of credit assignment."""

    needs: ClassVar[frozenset[str]]

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        """Return the advantages of a batch, and its draw weights. ``rng`` is the method's own randomness."""


# baselines for each time step; its eps is its own, not the run's
_RETURNS_TO_GO = {"spread": "to_go", "among": "time", "baseline": "others", "scale": "none", "eps": 1e-6}

METHODS: Registry[CreditMethod] = Registry(
    "credit",
    {
        "msgrpo": "agents.msgrpo.credit.methods:Compared",
        "rloo": Variant("msgrpo", {"baseline": "others", "scale": "none"}),
        "dapo": "agents.msgrpo.credit.methods:DAPO",
        "dr_grpo": Variant("msgrpo", {"baseline": "mean", "scale": "none"}),
        "lite_ppo": Variant("msgrpo", {"baseline": "mean", "scale": "returns_std", "eps": 1e-4}),
        "rtg": Variant("msgrpo", _RETURNS_TO_GO),
        "gigpo": "agents.msgrpo.credit.methods:GiGPO",
        "ppo_turn": "agents.msgrpo.credit.methods:PPOTurn",
        "tppo": Variant("ppo_turn", {"cut_goes_on": True}),
        "vine": "agents.msgrpo.credit.fresh:Vine",
    },
)

register = METHODS.register

__all__ = [
    "METHODS",
    "NEEDS",
    "Batch",
    "Bools",
    "ByReturn",
    "Credit",
    "CreditMethod",
    "Floats",
    "FreshRollouts",
    "Heads",
    "How",
    "Preferences",
    "Scale",
    "Segment",
    "Start",
    "Step",
    "StepCredit",
    "Trajectory",
    "averaged",
    "gae",
    "local_policy",
    "refuse_history",
    "register",
    "returns_to_go",
    "rounds_before",
    "same",
    "split_like",
    "standardised",
    "task_of",
    "whitened",
    "within_groups",
    "within_labels",
    "within_steps",
]
