"""Exact values of a game for one player whose chances are the worst within a ball around those of its rules.

Every state and action has a ball of its own, and nature chooses in each (rectangular, Iyengar 2005, Nilim and El Ghaoui
2005), anew in every round, with ``h`` of them left:

``Q_h(s, a) = min over q in B(p(s, a)) of sum_s' q(s') (r + V_{h-1}(s'))``,  ``V_h(s) = sum_a pi_h(a|s) Q_h(s, a)``
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from research.robustness.worst_case.balls import Ball, total_variation
from textgames import TSMG
from textgames.solving import END, Floats, Indices, StateSpace

MOST_STATES = 100_000  # within reach of the starts
TIE = 1e-9  # values that differ by no more are equal

Policy = Callable[[Floats, Indices, int], tuple[Floats, Floats]]
"""``(values of the actions, where those of each state begin, rounds left) -> (chances of the actions, values of the
states)``"""


def greedy(values: Floats, first: Indices, left: int) -> tuple[Floats, Floats]:
    """Choose evenly among the best actions."""
    best = np.maximum.reduceat(values, first)
    counts = np.diff(np.append(first, len(values)))
    chosen = (values >= np.repeat(best, counts) - TIE).astype(np.float64)
    return chosen / np.repeat(np.add.reduceat(chosen, first), counts), best


def follow(policy: Floats) -> Policy:
    """Return the policy whose chances are given, (horizon, actions of all states); row ``h - 1`` with ``h`` left."""

    def chosen(values: Floats, first: Indices, left: int) -> tuple[Floats, Floats]:
        chances = policy[left - 1, : len(values)]
        return chances, np.add.reduceat(chances * values, first)

    return chosen


def soft(temperature: float) -> Policy:
    """Return the policy that maximises its return less ``temperature KL(pi || uniform)`` at every decision:
    ``pi ~ exp(Q / temperature)``, ``V = temperature log mean exp(Q / temperature)``."""

    def chosen(values: Floats, first: Indices, left: int) -> tuple[Floats, Floats]:
        counts = np.diff(np.append(first, len(values)))
        best = np.maximum.reduceat(values, first)
        weights = np.exp((values - np.repeat(best, counts)) / temperature)
        sums = np.add.reduceat(weights, first)
        return weights / np.repeat(sums, counts), best + temperature * np.log(sums / counts)

    return chosen


@dataclass(frozen=True, eq=False)
class Solution:
    """The values of a policy against nature; row ``h - 1``, and ``h`` of ``values``, is of ``h`` rounds left."""

    values: Floats  # (horizon + 1, states + 1); the last state is the end
    action_values: Floats  # (horizon, actions of all states)
    policy: Floats  # likewise, the chances of the actions
    nature: Floats  # (horizon, actions of all states, outcomes), the worst chances


@dataclass(frozen=True, eq=False)
class Model:
    """All outcomes from some states within a horizon, as tables."""

    space: StateSpace
    horizon: int
    chances: Floats  # (actions of all states, outcomes), 0 beyond the last outcome
    paid: Floats  # likewise
    successors: Indices  # likewise, END beyond the last outcome

    @classmethod
    def of(cls, game: TSMG[Any], starts: Sequence[Hashable], horizon: int) -> "Model":
        """Find all that can happen; a ValueError if the game isn't for one player, or doesn't tell its chances."""
        if len(game.players) != 1 or not game.has_outcomes:
            raise ValueError(
                f"{type(game).__name__} has no exact worst case; accepted are games for one player that tell their "
                "chances, outcomes(state, joint_action), such as frozen-lake-slippery"
            )
        paid: list[float] = []  # the space keeps the means of rounds

        def outcomes(state: Any, joint_action: Mapping[str, str]) -> Any:
            found = game.outcomes(state, joint_action)
            paid.extend(rewards[game.players[0]] for _, _, rewards, _ in found)
            return found

        space = StateSpace.of(game, starts, horizon, MOST_STATES, outcomes=outcomes)
        counts = np.diff(space.first_outcome)
        there = np.arange(counts.max()) < counts[:, None]
        tables = [np.full(there.shape, fill) for fill in (0.0, 0.0, END)]
        for table, flat in zip(tables, (space.chances, paid, space.successors), strict=True):
            table[there] = flat
        return cls(space, horizon, *tables)

    def states(self, left: int) -> int:
        """Return how many states, of the first numbers, can be reached with so many rounds left."""
        return self.space.within[-1 if self.space.rounds is None else self.horizon - left]

    def policy(self, named: str | Callable[[Any, int], Mapping[str, float]]) -> Policy:
        """Return ``optimal`` play, ``nominal`` play (the best by the rules), or the one that a function gives."""
        if named == "optimal":
            return greedy
        if not callable(named):
            return follow(self.solve().policy)
        table = np.zeros((self.horizon, len(self.chances)))
        for (state, number), ((_, actions),) in zip(self.space.numbers.items(), self.space.decisions, strict=False):
            for left in range(1, self.horizon + 1):
                if number < self.states(left):
                    chances, first = named(state, left), self.space.first_round[number]
                    table[left - 1, first : first + len(actions)] = [chances.get(action, 0.0) for action in actions]
        return follow(table)

    def solve(self, policy: Policy = greedy, ball: Ball = total_variation, radius: float = 0.0) -> Solution:
        """Return the values of a policy at the worst chances within the radius; of radius 0, those of the rules."""
        shape = (self.horizon, len(self.chances))
        found = Solution(
            np.zeros((self.horizon + 1, self.space.within[-1] + 1)),
            *(np.zeros(shape), np.zeros(shape), np.zeros((*shape, self.chances.shape[1]))),
        )
        for left in range(1, self.horizon + 1):
            first = self.space.first_round[: self.states(left)]
            rounds = self.space.first_round[self.states(left)]
            worths = self.paid[:rounds] + found.values[left - 1][self.successors[:rounds]]
            nature = ball(self.chances[:rounds], worths, radius)
            values = (nature * worths).sum(axis=1)
            chances, worth = policy(values, first, left)
            found.values[left, : len(first)] = worth
            found.action_values[left - 1, :rounds] = values
            found.policy[left - 1, :rounds] = chances
            found.nature[left - 1, :rounds] = nature
        return found

    def start_values(self, solution: Solution) -> Floats:
        """Return what every start is worth with all rounds left, (starts,)."""
        return np.asarray(solution.values[self.horizon, list(self.space.starts)])
