"""Exact values of a game for one player whose chances are the worst within a ball around those of its rules.

Every state and action has a ball of its own, and nature chooses in each (rectangular, Iyengar 2005, Nilim and El Ghaoui
2005), anew in every round, with ``h`` of them left:

``Q_h(s, a) = min over q in B(p(s, a)) of sum_s' q(s') (r + V_{h-1}(s'))``,  ``V_h(s) = sum_a pi_h(a|s) Q_h(s, a)``

``B(p)`` is ``{q: sum |q - p| / 2 <= radius}`` for the ball ``tv``, ``{q: KL(q || p) <= radius}`` in nats for ``kl``,
both of chances of the outcomes that the rules list: none is added, so a round without chance stays as it is.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from textgames import TSMG
from textgames.solving import END, Floats, Indices, StateSpace

Ball = Callable[[Floats, Floats, float], Floats]
"""``(chances, worths, radius) -> the chances of the ball with the lowest mean worth``; all but the radius are (rounds,
outcomes), and chances are 0 beyond the outcomes of a round."""


def total_variation(chances: Floats, worths: Floats, radius: float) -> Floats:
    """Take the radius from the best outcomes, in their order, and give it to the worst one."""
    order = np.argsort(np.where(chances > 0, -worths, np.inf), axis=1, kind="stable")
    sorted_chances = np.take_along_axis(chances, order, axis=1)
    before = np.cumsum(sorted_chances, axis=1) - sorted_chances
    moved = np.clip(radius - before, 0, sorted_chances)
    found = np.empty_like(chances)
    np.put_along_axis(found, order, sorted_chances - moved, axis=1)
    worst = np.argmin(np.where(chances > 0, worths, np.inf), axis=1)
    found[np.arange(len(found)), worst] += moved.sum(axis=1)
    return found


def relative_entropy(chances: Floats, worths: Floats, radius: float) -> Floats:
    """Tilt the chances, ``q ~ p exp(-worth / beta)``, as far as the radius lets: the solution of the dual in one
    variable ``max over beta of -beta log E_p[exp(-worth / beta)] - beta radius``."""
    lowest = np.where(chances > 0, worths, np.inf).min(axis=1, keepdims=True)
    above = np.where(chances > 0, worths - lowest, 0.0)
    spread = above.max(axis=1, keepdims=True)
    above = np.divide(above, spread, out=np.zeros_like(above), where=spread > 0)
    if radius == 0:
        return chances
    low, high = np.full_like(spread, -40.0), np.full_like(spread, 40.0)  # of the logarithm of spread / beta

    def tilted(logarithm: Floats) -> Floats:
        found = chances * np.exp(-np.exp(logarithm) * above)
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    for _ in range(40):
        middle = (low + high) / 2
        inside = divergence(tilted(middle), chances)[:, None] <= radius
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return tilted(low)


def divergence(found: Floats, chances: Floats) -> Floats:
    """Return ``KL(found || chances)`` of every round, (rounds,)."""
    ratio = np.divide(found, chances, out=np.ones_like(found), where=found > 0)
    return np.asarray((found * np.log(ratio)).sum(axis=1))


def distance(found: Floats, chances: Floats) -> Floats:
    """Return the total variation of every round, (rounds,)."""
    return np.asarray(np.abs(found - chances).sum(axis=1) / 2)


BALLS: Mapping[str, Ball] = {"tv": total_variation, "kl": relative_entropy}
DISTANCES = {"tv": distance, "kl": divergence}


def towards(others: Floats, chances: Floats, ball: str, radius: float) -> Floats:
    """Return the chances of the ball that are farthest on the way from one round's own to others, (outcomes,)."""
    low, high = 0.0, 1.0
    for _ in range(50):
        share = (low + high) / 2
        inside = DISTANCES[ball]((share * others + (1 - share) * chances)[None], chances[None])[0] <= radius
        low, high = (share, high) if inside else (low, share)
    return low * others + (1 - low) * chances


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
