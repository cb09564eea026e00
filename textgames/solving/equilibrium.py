"""Values, best responses, exploitability and equilibria of small games of hidden information, all exact but the last.

::

    tree = expand(KuhnPoker())                 # of textgames.solving.game_tree
    nash_conv(tree, uniform_policy(tree))      # 0.9167
    solution = solve(tree)                     # CFR+
    solution.values["player_0"]                # -1/18, nearly

A policy is ``{(player, observation): {action: probability}}``, for all players together. Everything is computed on the
sequence form (:mod:`textgames.solving.game_tree`): a pass over the leaves, then one over the levels of each player's
own decisions.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textgames.solving.game_tree import DecisionTree, GameTree, Key, Policy
from textgames.solving.state_space import Floats
from textgames.tsmg import Action, Player

Behaviour = tuple[Floats, ...]
"""A policy as arrays: of every player, the probability of every sequence's action in its set; 1 for the empty one."""

SUM_TOLERANCE = 1e-6


class BestResponse(NamedTuple):
    """What a player can get at most, and how: the first of equally good actions at each of its information sets."""

    value: float
    actions: dict[Key, Action]


class Solution(NamedTuple):
    """An approximate equilibrium."""

    policy: dict[Key, dict[Action, float]]
    values: dict[Player, float]
    exploitability: float
    iterations: int


def uniform_policy(tree: GameTree) -> dict[Key, dict[Action, float]]:
    """Return every legal action with equal chances."""
    return {each.key: dict.fromkeys(each.actions, 1 / len(each.actions)) for each in tree.information_sets}


def mixed(policy: Policy, other: Policy, share: float) -> dict[Key, dict[Action, float]]:
    """Return ``other`` with probability ``share`` at each decision, and ``policy`` else."""
    return {
        key: {action: (1 - share) * chance + share * other[key][action] for action, chance in chances.items()}
        for key, chances in policy.items()
    }


def as_policy(tree: GameTree, behaviour: Behaviour) -> dict[Key, dict[Action, float]]:
    """Return the policy that is given as arrays."""
    policy = {}
    for decisions, own in zip(tree.decisions, behaviour, strict=True):
        for each, first in zip(decisions.sets, decisions.firsts.tolist(), strict=True):
            policy[each.key] = dict(zip(each.actions, own[first : first + len(each.actions)].tolist(), strict=True))
    return policy


def as_behaviour(tree: GameTree, policy: Policy) -> Behaviour:
    """Return a policy as arrays, or raise ValueError if it isn't complete or doesn't fit the legal actions."""
    behaviour = []
    for decisions in tree.decisions:
        own = np.ones(decisions.num_sequences)
        for each, first in zip(decisions.sets, decisions.firsts, strict=True):
            if (given := policy.get(each.key)) is None:
                raise ValueError(f"the policy says nothing for {each.player} where it reads {each.observation!r}")
            chances = [given.get(action, 0.0) for action in each.actions]
            if not given.keys() <= {*each.actions} or min(chances) < 0 or abs(sum(chances) - 1) > SUM_TOLERANCE:
                raise ValueError(
                    f"the policy must give {', '.join(each.actions)} probabilities that sum to 1 for {each.player} "
                    f"where it reads {each.observation!r}, got {dict(given)}"
                )
            own[first : first + len(each.actions)] = chances
        behaviour.append(own)
    return tuple(behaviour)


def normalised(decisions: DecisionTree, weights: Floats) -> Floats:
    """Return a player's part of a policy: probabilities in proportion to weights, equal ones if all weights are 0."""
    if not decisions.sets:
        return np.ones(1)
    sums = np.add.reduceat(weights[1:], decisions.firsts - 1)[decisions.set_of]
    sizes = np.bincount(decisions.set_of)[decisions.set_of]
    shares: Floats = np.divide(weights[1:], sums, out=1.0 / sizes, where=sums > 0)
    return np.concatenate([[1.0], shares])


def expected_values(tree: GameTree, policy: Policy | Behaviour) -> dict[Player, float]:
    """Return the return that each player expects."""
    plans = _plans(tree, _behaviour(tree, policy))
    reach = tree.chances * np.prod([plan[tree.sequences[:, i]] for i, plan in enumerate(plans)], axis=0)
    return dict(zip(tree.players, map(float, reach @ tree.payoffs), strict=True))


def best_response(tree: GameTree, policy: Policy | Behaviour, player: Player) -> BestResponse:
    """Return the best that ``player`` can do against the others' part of the policy; its own part plays no part."""
    place = tree.players.index(player)
    decisions = tree.decisions[place]
    values = _against(tree, _plans(tree, _behaviour(tree, policy)), place)
    best = _fold(decisions, values, None)
    actions = {}
    for each, first in zip(decisions.sets, decisions.firsts, strict=True):
        number = int(np.argmax(values[first : first + len(each.actions)]))
        actions[each.key] = each.actions[number]
    return BestResponse(best, actions)


def gain_of_best_response_to(tree: GameTree, taken_for: Behaviour, really: Behaviour) -> float:
    """Return what players gain on average who take the policy for another one and answer that one best.

    At most the exploitability of ``really`` in a zero-sum game, and the same if both are equal; linear in what
    ``really`` does at each single information set.
    """
    wrong, right, gained = _plans(tree, taken_for), _plans(tree, really), 0.0
    for place, decisions in enumerate(tree.decisions):
        values = _against(tree, wrong, place)
        _fold(decisions, values, None)
        answer = _greedy(decisions, values)
        gained += _fold(decisions, _against(tree, right, place), answer)
    return (gained - sum(expected_values(tree, really).values())) / len(tree.players)


def nash_conv(tree: GameTree, policy: Policy | Behaviour) -> float:
    """Return how much all players together would gain if each alone answered best: 0 exactly in equilibrium."""
    behaviour = _behaviour(tree, policy)
    plans = _plans(tree, behaviour)
    best = [_fold(decisions, _against(tree, plans, i), None) for i, decisions in enumerate(tree.decisions)]
    return max(0.0, sum(best) - sum(expected_values(tree, behaviour).values()))


def exploitability(tree: GameTree, policy: Policy | Behaviour) -> float:
    """Return NashConv shared among the players: what a policy loses on average to its worst opponent."""
    return nash_conv(tree, policy) / len(tree.players)


def action_values(tree: GameTree, policy: Policy | Behaviour, key: Key) -> dict[Action, float]:
    """Return what a player expects from each action at an information set, which must be one that is reached."""
    place = tree.players.index(key[0])
    decisions = tree.decisions[place]
    number = next((i for i, each in enumerate(decisions.sets) if each.key == key), None)
    if number is None:
        raise ValueError(f"{key[0]} never has to move at the observation {key[1]!r}")
    first, actions = int(decisions.firsts[number]), decisions.sets[number].actions
    values = sequence_values(tree, _behaviour(tree, policy))[place][first : first + len(actions)]
    if np.isnan(values).any():
        raise ValueError(f"the others' play never leads to where {key[0]} reads {key[1]!r}")
    return dict(zip(actions, map(float, values), strict=True))


def sequence_values(tree: GameTree, behaviour: Behaviour) -> Behaviour:
    """Return :func:`action_values` of every sequence, for every player; NaN where the others' play never leads."""
    plans, found = _plans(tree, behaviour), []
    for place, decisions in enumerate(tree.decisions):
        values = _against(tree, plans, place)
        _fold(decisions, values, behaviour[place])
        reach = _reaches(tree, plans, place)[decisions.set_of]
        worth = np.divide(values[1:], reach, out=np.full(len(reach), np.nan), where=reach > 0)
        found.append(np.concatenate([[0.0], worth]))
    return tuple(found)


def solve(tree: GameTree, iterations: int = 1000, target: float = 0.0) -> Solution:
    """Find an equilibrium of a zero-sum game of two by CFR+ and return the average strategy; a ValueError for another
    game.

    Regrets are kept above 0, the players are updated in turn, and iteration ``t`` weighs ``t`` in the average
    (Tammelin, "Solving large imperfect information games using CFR+", arXiv 1407.5042). It stops after so many
    iterations, or at the exploitability ``target``, which is looked at every 100 of them.
    """
    if not tree.is_zero_sum:
        raise ValueError("an equilibrium is computed for zero-sum games of two players; this game is not one")
    regrets = [np.zeros(decisions.num_sequences) for decisions in tree.decisions]
    sums = [np.zeros(decisions.num_sequences) for decisions in tree.decisions]
    current = [normalised(decisions, regret) for decisions, regret in zip(tree.decisions, regrets, strict=True)]
    average: Behaviour = tuple(current)
    done = 0
    for done in range(1, iterations + 1):
        for place, decisions in enumerate(tree.decisions):
            values = _against(tree, _plans(tree, current), place)
            _fold(decisions, values, current[place])
            regrets[place] = np.maximum(regrets[place] + _regrets(decisions, values, current[place]), 0)
            current[place] = normalised(decisions, regrets[place])
            sums[place] += done * realisation_plan(decisions, current[place])
        if done % 100 == 0 or done == iterations:
            average = tuple(normalised(decisions, total) for decisions, total in zip(tree.decisions, sums, strict=True))
            if exploitability(tree, average) <= target:
                break
    return Solution(as_policy(tree, average), expected_values(tree, average), exploitability(tree, average), done)


def _behaviour(tree: GameTree, policy: Policy | Behaviour) -> Behaviour:
    return policy if isinstance(policy, tuple) else as_behaviour(tree, policy)


def realisation_plan(decisions: DecisionTree, behaviour: Floats) -> Floats:
    """Return the realisation plan: for every sequence, the product of the player's own probabilities on the way."""
    plan = np.ones(decisions.num_sequences)
    for _, sequences in decisions.levels:
        parents = decisions.parents[decisions.set_of[sequences.start - 1 : sequences.stop - 1]]
        plan[sequences] = behaviour[sequences] * plan[parents]
    return plan


def _plans(tree: GameTree, behaviour: Sequence[Floats]) -> list[Floats]:
    return [realisation_plan(decisions, own) for decisions, own in zip(tree.decisions, behaviour, strict=True)]


def _chances_against(tree: GameTree, plans: Sequence[Floats], place: int) -> Floats:
    """Return the probability that chance and the others lead to each leaf. Shape (leaves,)."""
    chances = tree.chances
    for other, plan in enumerate(plans):
        if other != place:
            chances = chances * plan[tree.sequences[:, other]]
    return chances


def _sum_by_sequence(tree: GameTree, weights: Floats, place: int) -> Floats:
    """Sum weights of leaves over those that end in each sequence of one player. Shape (sequences,)."""
    sums: NDArray[Any] = np.bincount(
        tree.sequences[:, place], weights=weights, minlength=tree.decisions[place].num_sequences
    )
    return sums.astype(np.float64, copy=False)


def _against(tree: GameTree, plans: Sequence[Floats], place: int) -> Floats:
    """Return what the leaves of each of a player's last sequences pay, weighed by chance and others; (sequences,)."""
    return _sum_by_sequence(tree, _chances_against(tree, plans, place) * tree.payoffs[:, place], place)


def _fold(decisions: DecisionTree, values: Floats, behaviour: Floats | None) -> float:
    """Add to every sequence what its later decisions are worth, in place, and return the value of the whole.

    A decision is worth the mean of its actions under the player's own behaviour; their maximum if that is ``None``.
    """
    for sets, sequences in reversed(decisions.levels):
        starts = decisions.firsts[sets] - sequences.start
        if behaviour is None:
            worth = np.maximum.reduceat(values[sequences], starts)
        else:
            worth = np.add.reduceat(values[sequences] * behaviour[sequences], starts)
        np.add.at(values, decisions.parents[sets], worth)
    return float(values[0])


def _regrets(decisions: DecisionTree, values: Floats, behaviour: Floats) -> Floats:
    if not decisions.sets:
        return np.zeros(1)
    means = np.add.reduceat((values * behaviour)[1:], decisions.firsts - 1)
    return np.concatenate([[0.0], values[1:] - means[decisions.set_of]])


def _greedy(decisions: DecisionTree, values: Floats) -> Floats:
    """Return the behaviour that takes an action of the largest value, any of equals with the same probability."""
    if not decisions.sets:
        return np.ones(1)
    largest = np.maximum.reduceat(values[1:], decisions.firsts - 1)[decisions.set_of]
    return normalised(decisions, np.concatenate([[1.0], (values[1:] >= largest).astype(float)]))


def _reaches(tree: GameTree, plans: Sequence[Floats], place: int) -> Floats:
    """Return the probability that chance and the others lead to each information set of a player."""
    decisions = tree.decisions[place]
    chances = _sum_by_sequence(tree, _chances_against(tree, plans, place), place)
    first_action = np.zeros(decisions.num_sequences)
    first_action[decisions.firsts] = 1.0  # below any one plan of the player's own lies everything that is reached
    _fold(decisions, chances, first_action)
    reached: Floats = chances[decisions.firsts]
    return reached
