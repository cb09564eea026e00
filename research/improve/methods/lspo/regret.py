"""Counterfactual regret minimisation of a game that can only be played: Monte Carlo, for any number of seats.

Zinkevich et al., "Regret minimization in games with incomplete information" (2007), sampled (Lanctot et al., 2009): one
seat walks through the game and, wherever it decides, every action is played to the end once. The walk continues with a
uniform action, whose probability its later regrets are divided by; all others follow their policies. Actions are
compared with equal luck, so what makes no difference has no regret at all.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[np.float64]
PerAction = Mapping[Hashable, Weights]
"""``{what is known: a number for each action}``."""

LONGEST = 64  # decisions of a game for which luck is drawn; later ones meet the same luck again


class Solution(NamedTuple):
    """What came of the traversals."""

    policy: PerAction  # the weight of each action, the average over all traversals
    values: PerAction  # what each action got on average, if the others' play led


class Decision(NamedTuple):
    """Whose turn it is, what it knows (equal knowledge means equal actions), and what it may choose."""

    seat: int
    known: Hashable
    actions: Sequence[Any]


def solve(game: Any, seats: int, traversals: int, rng: np.random.Generator) -> Solution:
    """Return what came of so many traversals, each of one seat in turn; later ones weigh more in the policy.

    The ``game`` is one between decisions: ``deal(rng)`` returns a node and draws all of its chances, ``decision(node)``
    whose turn it is, ``None`` if the game is over, ``after(node, action)`` the next node, and ``returns(node)`` what
    every seat has got at the end.
    """
    tables = _Tables(game)
    for number in range(traversals):
        tables.traverse(number % seats, float(number + 1), rng)
    return Solution(
        {known: total / total.sum() for known, total in tables.sums.items() if total.any()},
        {known: total / tables.visits[known] for known, total in tables.values.items()},
    )


class _Tables:
    def __init__(self, game: Any) -> None:
        self.game = game
        self.regrets: dict[Hashable, Weights] = {}
        self.sums: dict[Hashable, Weights] = {}
        self.values: dict[Hashable, Weights] = {}
        self.visits: dict[Hashable, float] = {}

    def traverse(self, seat: int, weight: float, rng: np.random.Generator) -> None:
        game, luck, node = self.game, rng.random(LONGEST).tolist(), self.game.deal(rng)
        reciprocal, played = 1.0, 0  # of the probability of the walk's own actions; decisions so far
        while (found := game.decision(node)) is not None:
            policy = self.policy(found)
            if found.seat == seat:
                children = [game.after(node, action) for action in found.actions]
                values = np.array([self.value(child, seat, luck, played + 1) for child in children])
                self.regrets[found.known] += reciprocal * (values - policy @ values)
                self.values[found.known] = self.values.get(found.known, 0.0) + reciprocal * values
                self.visits[found.known] = self.visits.get(found.known, 0.0) + reciprocal
                reciprocal *= len(found.actions)
                node = children[int(luck[played % LONGEST] * len(children))]
            else:
                self.sums[found.known] += weight * np.array(policy)
                node = game.after(node, found.actions[place_of(luck[played % LONGEST], policy)])
            played += 1

    def value(self, node: Any, seat: int, luck: Sequence[float], played: int) -> float:
        """Return what a seat gets if everybody, itself too, continues by the policies."""
        while (found := self.game.decision(node)) is not None:
            place = place_of(luck[played % LONGEST], self.policy(found))
            node, played = self.game.after(node, found.actions[place]), played + 1
        return float(self.game.returns(node)[seat])

    def policy(self, found: Decision) -> list[float]:
        """Return regret matching: in proportion to the regrets above 0, uniform if there are none."""
        if found.known not in self.regrets:
            self.regrets[found.known], self.sums[found.known] = (np.zeros(len(found.actions)) for _ in range(2))
        above = [max(regret, 0.0) for regret in self.regrets[found.known].tolist()]
        total = sum(above)
        return [regret / total if total > 0 else 1 / len(above) for regret in above]


def place_of(luck: float, weights: Sequence[float]) -> int:
    """Return the place in a list that a uniform number falls on, if places are as large as their weights."""
    left = luck * sum(weights)
    for place, weight in enumerate(weights):
        left -= weight
        if left < 0:
            return place
    return len(weights) - 1
