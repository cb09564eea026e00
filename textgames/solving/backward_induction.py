"""Backward induction on the states within reach of one state: the engine of the exact solvers.

One round is backed up for all states at once:

``V_0 = 0`` and ``V_h(s) = best over a of sum p (r + V_{h-1}(s'))``

where "best" is the largest for a player that wants the return to be large and the smallest for its opponent.
"""

from collections.abc import Hashable

import numpy as np

from textgames.solving.state_space import Floats, StateSpace
from textgames.tsmg import Player

_SETTLED = 1e-12  # without a limit of steps, values that a round changes by no more than this are taken as final
_MOST_ROUNDS = 100_000  # values that still change after so many rounds are said not to settle


class BackwardInduction:
    """The first player's values in the states within reach of one, for every number of steps; one moves in each."""

    def __init__(self, space: StateSpace, player: Player) -> None:
        self.space = space
        self._rewards = space.rewards[:, 0]
        self._maximises = np.array([mover.player == player for (mover,) in space.decisions])
        self._two_sided = not self._maximises.all()
        self._tables = [np.zeros(space.within[-1] + 1)]  # V_0, V_1, ...; the last place is the end's and stays 0
        self._settled = False  # whether no further round changes the last of them
        self._unlimited: Floats | None = None

    def covers(self, state: Hashable, steps_left: int | None) -> bool:
        """Return whether the value of a state with so many steps left is known here."""
        number, rounds = self.space.numbers.get(state), self.space.rounds
        if number is None or rounds is None:
            return number is not None
        return steps_left is not None and steps_left <= rounds and number < self.space.within[rounds - steps_left]

    def value(self, state: Hashable, steps_left: int | None) -> float:
        """Return ``V_h(s)`` of a covered state; with ``None`` its limit, or a ValueError if values don't settle."""
        table = self._table_without_limit() if steps_left is None else self._table(steps_left)
        return float(table[self.space.numbers[state]])

    def fixed_values(self, steps_left: int | None, chances: Floats) -> Floats:
        """Return the start's value under policies that never change, shape (policies,).

        ``chances`` are those of every action of every state, (rounds of the space, policies), and sum to 1 in a state.
        A ValueError if values don't settle without a limit of steps.
        """
        table = np.zeros((self.space.within[-1] + 1, chances.shape[1]))
        rounds = _MOST_ROUNDS if steps_left is None else steps_left
        for played in range(1, rounds + 1):
            states = self._states_after(played)
            worth = self.space.round_values(self._rewards[:, None], table, states)
            found = np.add.reduceat(worth * chances[: len(worth)], self.space.first_round[:states])
            before, table = table, _with_the_end(found)
            if self.space.rounds is None and np.abs(table - before).max() <= _SETTLED:
                return np.asarray(table[0])
        if steps_left is None:
            raise ValueError(f"without a limit of steps the values haven't settled after {rounds:,} rounds")
        return np.asarray(table[0])

    def _states_after(self, played: int) -> int:
        """Return how many states have values after backing up so many rounds: those that can be reached in time."""
        return self.space.within[-1 if self.space.rounds is None else self.space.rounds - played]

    def _table(self, steps_left: int) -> Floats:
        while len(self._tables) <= steps_left and not self._settled:
            table = self._back_up(self._tables[-1], self._states_after(len(self._tables)))
            self._settled = self.space.rounds is None and np.array_equal(table, self._tables[-1])
            self._tables.append(table)
        return self._tables[min(steps_left, len(self._tables) - 1)]

    def _table_without_limit(self) -> Floats:
        if self._unlimited is None:
            table, change, rounds = self._tables[-1], np.inf, 0
            while change > _SETTLED:
                before, table = table, self._back_up(table, self.space.within[-1])
                change, rounds = np.abs(table - before).max(), rounds + 1
                if rounds == _MOST_ROUNDS:
                    raise ValueError(
                        f"without a limit of steps the values haven't settled after {_MOST_ROUNDS:,} rounds: the game "
                        "may go on for ever; give it a limit"
                    )
            self._unlimited = table
        return self._unlimited

    def _back_up(self, after: Floats, states: int) -> Floats:
        action_values = self.space.round_values(self._rewards, after, states)
        starts = self.space.first_round[:states]
        largest = np.maximum.reduceat(action_values, starts)
        if not self._two_sided:
            return _with_the_end(largest)
        smallest = np.minimum.reduceat(action_values, starts)
        return _with_the_end(np.where(self._maximises[:states], largest, smallest))


def _with_the_end(values: Floats) -> Floats:
    return np.concatenate([values, np.zeros((1, *values.shape[1:]))])
