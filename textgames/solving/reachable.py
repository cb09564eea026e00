"""The states within reach of one state, as arrays, and backward induction on them: the engine of the exact solvers.

States are numbered in the order of their distance from the first one, and the chances between them are kept in flat
arrays, so that one round is backed up for all of them at once:

``V_0 = 0`` and ``V_h(s) = best over a of sum p (r + V_{h-1}(s'))``

where "best" is the largest for a player that wants the return to be large and the smallest for its opponent.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Play = Literal["best", "uniform"]
"""Whether everybody plays as well as possible, or picks every legal action with equal chances."""

Branch = Sequence[tuple[float, Hashable, float, bool]]
"""What an action may lead to: ``(probability, next state, reward, whether the game is over)``."""

Values = NDArray[np.float64]

_SETTLED = 1e-12  # without a limit of steps, values that a round changes by no more than this are taken as final
_MOST_ROUNDS = 100_000  # values that still change after so many rounds are said not to settle


class Expanded(NamedTuple):
    """One state's part of the game: whether who acts wants a large return, and a branch for each legal action."""

    maximises: bool
    branches: Sequence[Branch]


class Reachable:
    """The states within reach of ``root``, with their values for every number of steps that are left.

    Args:
        root: the state to start from.
        expand: what can be done in a state, and what comes of it.
        rounds: how far to go; ``None`` for as far as it goes.
        max_states: the most states that are kept.

    Raises:
        ValueError: there are more states than that.
    """

    def __init__(
        self, root: Hashable, expand: Callable[[Hashable], Expanded], rounds: int | None, max_states: int
    ) -> None:
        # State 0 stands for the end of the game, whichever it was: one action, which stays there and pays nothing.
        numbers: dict[Hashable, int] = {root: 1}
        chances, successors, rewards, maximises = [1.0], [0], [0.0], [True]
        branch_starts, state_starts = [0, 1], [0, 1]
        within = [2]  # how many of the states are within 0, 1, 2, ... rounds of the root, the end included
        frontier: list[Hashable] = [root]
        while frontier and (rounds is None or len(within) <= rounds):
            reached: list[Hashable] = []
            for state in frontier:
                expanded = expand(state)
                maximises.append(expanded.maximises)
                for branch in expanded.branches:
                    expected = 0.0
                    for chance, after, reward, over in branch:
                        number = 0 if over else numbers.get(after, -1)
                        if number < 0:
                            number = numbers[after] = len(numbers) + 1
                            reached.append(after)
                        chances.append(chance)
                        successors.append(number)
                        expected += chance * reward
                    rewards.append(expected)
                    branch_starts.append(len(successors))
                state_starts.append(len(rewards))
                if len(numbers) > max_states:
                    told = "" if rounds is None else f" within {rounds} rounds"
                    raise ValueError(f"more than {max_states:,} states can be reached{told}: too many to solve exactly")
            frontier = reached
            within.append(len(numbers) + 1)
        self.numbers = numbers
        self._rounds = rounds if frontier else None  # None: everything within reach is here
        self._within = within
        self._chances, self._successors = np.array(chances), np.array(successors)
        self._rewards, self._maximises = np.array(rewards), np.array(maximises)
        self._branch_starts, self._state_starts = np.array(branch_starts), np.array(state_starts)
        self._two_sided = not all(maximises)
        self._values: dict[Play, list[Values]] = {kind: [np.zeros(within[-1])] for kind in ("best", "uniform")}
        self._settled: dict[Play, Values] = {}  # where no further round changes anything
        self._unlimited: dict[Play, Values] = {}

    def covers(self, state: Hashable, steps_left: int | None) -> bool:
        """Whether the value of a state with so many steps left is known here."""
        number = self.numbers.get(state)
        if number is None or self._rounds is None:
            return number is not None
        return (
            steps_left is not None and steps_left <= self._rounds and number < self._within[self._rounds - steps_left]
        )

    def value(self, state: Hashable, steps_left: int | None, play: Play) -> float:
        """``V_h(s)`` of a state that is covered; with ``None`` the value that is approached as the limit grows.

        Raises:
            ValueError: without a limit, the values don't settle.
        """
        table = self._table_without_limit(play) if steps_left is None else self._table(steps_left, play)
        return float(table[self.numbers[state]])

    def fixed_values(self, steps_left: int | None, chances: Values) -> Values:
        """The root's value under policies that never change: one for each column of ``chances``, shape (policies,).

        Args:
            steps_left: rounds that are left at the root; ``None`` for no limit.
            chances: of every action of every state, in the order in which states were expanded, the end of the game
                (one action, with chance 1) before all of them. Shape (branches, policies); those of a state sum to 1.

        Raises:
            ValueError: without a limit, the values don't settle.
        """
        table = np.zeros((self._within[-1], chances.shape[1]))
        rounds = _MOST_ROUNDS if steps_left is None else steps_left
        for played in range(1, rounds + 1):
            states = self._within[-1 if self._rounds is None else self._rounds - played]
            branches = self._state_starts[states]
            entries = self._branch_starts[branches]
            ahead = self._chances[:entries, None] * table[self._successors[:entries]]
            worth = self._rewards[:branches, None] + np.add.reduceat(ahead, self._branch_starts[:branches])
            before, table = table, np.add.reduceat(worth * chances[:branches], self._state_starts[:states])
            if self._rounds is None and np.abs(table - before).max() <= _SETTLED:
                return np.asarray(table[1])
        if steps_left is None:
            raise ValueError(f"without a limit of steps the values haven't settled after {rounds:,} rounds")
        return np.asarray(table[1])

    def _table(self, steps_left: int, play: Play) -> Values:
        tables = self._values[play]
        while len(tables) <= steps_left:
            if play in self._settled:
                return self._settled[play]
            # with h steps left, values are needed only so far from the root as the others can be reached in time
            within = -1 if self._rounds is None else self._rounds - len(tables)
            table = self._back_up(tables[-1], self._within[within], play)
            if self._rounds is None and np.array_equal(table, tables[-1]):
                self._settled[play] = table
            tables.append(table)
        return tables[steps_left]

    def _table_without_limit(self, play: Play) -> Values:
        if play not in self._unlimited:
            table, change, rounds = self._values[play][-1], np.inf, 0
            while change > _SETTLED:
                before, table = table, self._back_up(table, self._within[-1], play)
                change, rounds = np.abs(table - before).max(), rounds + 1
                if rounds == _MOST_ROUNDS:
                    raise ValueError(
                        f"without a limit of steps the values haven't settled after {_MOST_ROUNDS:,} rounds: the game "
                        "may go on for ever; give it a limit"
                    )
            self._unlimited[play] = table
        return self._unlimited[play]

    def _back_up(self, after: Values, states: int, play: Play) -> Values:
        """``V_h`` of the first ``states`` states from ``V_{h-1}``."""
        branches = self._state_starts[states]
        entries = self._branch_starts[branches]
        ahead = self._chances[:entries] * after[self._successors[:entries]]
        action_values = self._rewards[:branches] + np.add.reduceat(ahead, self._branch_starts[:branches])
        starts = self._state_starts[:states]
        if play == "uniform":
            counts = np.diff(self._state_starts[: states + 1])
            return np.asarray(np.add.reduceat(action_values, starts) / counts)
        largest = np.maximum.reduceat(action_values, starts)
        if not self._two_sided:
            return np.asarray(largest)
        smallest = np.minimum.reduceat(action_values, starts)
        return np.where(self._maximises[:states], largest, smallest)
