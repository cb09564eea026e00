"""Policies of a small game in two forms: as a mapping that people read, and as arrays that are computed with."""

import numpy as np

from textgames.solving.game_tree import DecisionTree, GameTree, InformationSet, Key, Policy
from textgames.solving.state_space import Floats
from textgames.tsmg import Action

Behaviour = tuple[Floats, ...]
"""A policy as arrays: of every player, the probability of every sequence's action in its set; 1 for the empty one."""

SUM_TOLERANCE = 1e-6


def uniform_policy(tree: GameTree) -> dict[Key, dict[Action, float]]:
    """Every legal action with equal chances."""
    return {each.key: dict.fromkeys(each.actions, 1 / len(each.actions)) for each in tree.information_sets}


def mixed(policy: Policy, other: Policy, share: float) -> dict[Key, dict[Action, float]]:
    """At each decision, ``other`` with probability ``share`` and ``policy`` else."""
    return {
        key: {action: (1 - share) * chance + share * other[key][action] for action, chance in chances.items()}
        for key, chances in policy.items()
    }


def as_policy(tree: GameTree, behaviour: Behaviour) -> dict[Key, dict[Action, float]]:
    """The policy that is given as arrays."""
    policy = {}
    for decisions, own in zip(tree.decisions, behaviour, strict=True):
        for each, first in zip(decisions.sets, decisions.firsts.tolist(), strict=True):
            policy[each.key] = dict(zip(each.actions, own[first : first + len(each.actions)].tolist(), strict=True))
    return policy


def as_behaviour(tree: GameTree, policy: Policy) -> Behaviour:
    """The arrays of a policy.

    Raises:
        ValueError: an information set is missing, or its probabilities aren't those of its legal actions.
    """
    behaviour = []
    for decisions in tree.decisions:
        own = np.ones(decisions.num_sequences)
        for each, first in zip(decisions.sets, decisions.firsts, strict=True):
            own[first : first + len(each.actions)] = _probabilities(each, policy)
        behaviour.append(own)
    return tuple(behaviour)


def _probabilities(each: InformationSet, policy: Policy) -> list[float]:
    given = policy.get(each.key)
    if given is None:
        raise ValueError(f"the policy says nothing for {each.player} where it reads {each.observation!r}")
    probabilities = [given.get(action, 0.0) for action in each.actions]
    strange = [action for action in given if action not in each.actions]
    if strange or min(probabilities) < 0 or abs(sum(probabilities) - 1) > SUM_TOLERANCE:
        raise ValueError(
            f"the policy must give {', '.join(each.actions)} probabilities that sum to 1 for {each.player} where it "
            f"reads {each.observation!r}, got {dict(given)}"
        )
    return probabilities


def normalised(decisions: DecisionTree, weights: Floats) -> Floats:
    """A player's part of a policy: probabilities in proportion to weights, equal ones where all weights are 0."""
    if not decisions.sets:
        return np.ones(1)
    sums = np.add.reduceat(weights[1:], decisions.firsts - 1)[decisions.set_of]
    sizes = np.bincount(decisions.set_of)[decisions.set_of]
    shares: Floats = np.divide(weights[1:], sums, out=1.0 / sizes, where=sums > 0)
    return np.concatenate([[1.0], shares])
