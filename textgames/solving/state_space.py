"""Everything that may come of a game from some states, as flat arrays, and backward induction on them.

A *decision* is a player who is to move in a state, with its legal actions. A *round* is a state and one action of all
who are to move there; what may come of it are its *outcomes*. States are numbered in the order in which they are found,
which is that of their distance from the starts.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textgames.tsmg import TSMG, Action, Outcome, Player

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

END = -1
"""The end of the game among successors; in tables of values the last place, which is 0."""


class Decision(NamedTuple):
    """A player who is to move, and what it may choose from."""

    player: Player
    actions: tuple[Action, ...]


def decisions_in(game: TSMG[Any], state: Any) -> tuple[Decision, ...]:
    """List the decisions of all who are to move, or raise ValueError if their actions can't be listed."""
    found = tuple([Decision(player, game.legal_actions(state, player)) for player in game.to_move(state)])
    for player, actions in found:
        if not actions:
            name = type(game).__name__
            raise ValueError(f"the actions of {player} in {name} can't be listed, so it can't be solved exactly")
    return found


def joint_actions(decisions: Sequence[Decision]) -> Iterator[dict[Player, Action]]:
    """Yield all ways to take one action for each decision; the last decision's changes first."""
    players = [each.player for each in decisions]
    for actions in product(*[each.actions for each in decisions]):
        yield dict(zip(players, actions, strict=True))


@dataclass(frozen=True, eq=False)
class StateSpace:
    """The states that can be reached from some states, as flat arrays."""

    # ``{state: its number}`` of all states before the end, in the order of their numbers
    numbers: dict[Hashable, int]
    # the numbers of the states that it was expanded from; one for each of those given, so perhaps repeated
    starts: tuple[int, ...]
    # how many states are within 0, 1, 2, ... rounds of the starts. All but the farthest are expanded, and they have
    # the first numbers.
    within: tuple[int, ...]
    # how many rounds away from the starts is all that is known; ``None`` if nothing else can be reached
    rounds: int | None
    decisions: tuple[tuple[Decision, ...], ...]  # of every expanded state, those of its players who are to move
    # (expanded states + 1,) where the rounds of a state begin, in the order of :func:`joint_actions`
    first_round: Indices
    rewards: Floats  # (rounds, players) what a round pays on average
    first_outcome: Indices  # (rounds + 1,) where the outcomes of a round begin
    chances: Floats  # (outcomes,) their probabilities
    successors: Indices  # (outcomes,) the next state's number, :data:`END` if the game is over

    @classmethod
    def of(
        cls,
        game: TSMG[Any],
        starts: Iterable[Hashable],
        rounds: int | None,
        max_states: int,
        *,
        outcomes: Callable[[Any, Mapping[Player, Action]], Sequence[Outcome[Any]]] | None = None,
        too_many: str = "too many to solve exactly",
    ) -> "StateSpace":
        """Find all that can be reached within so many rounds, or at all with ``None``, whatever the players do.

        More states than ``max_states``, and actions that can't be listed, raise ValueError. ``outcomes`` stands in for
        the game's own.
        """
        numbers: dict[Hashable, int] = {}
        first = tuple([numbers.setdefault(start, len(numbers)) for start in starts])
        players, come_of = game.players, game.outcomes if outcomes is None else outcomes
        kept: dict[tuple[Decision, ...], tuple[Decision, ...]] = {}  # most states have equal decisions
        decisions: list[tuple[Decision, ...]] = []
        chances: list[float] = []
        rewards: list[float] = []
        successors: list[int] = []
        first_round, first_outcome = [0], [0]
        within = [len(numbers)]
        frontier = list(numbers)
        while frontier and (rounds is None or len(within) <= rounds):
            reached: list[Hashable] = []
            for state in frontier:
                here = decisions_in(game, state)
                decisions.append(kept.setdefault(here, here))
                for joint_action in joint_actions(here):
                    paid = [0.0] * len(players)
                    for chance, after, reward, over in come_of(state, joint_action):
                        number = END if over else numbers.get(after)
                        if number is None:
                            number = numbers[after] = len(numbers)
                            reached.append(after)
                        chances.append(chance)
                        successors.append(number)
                        for place, player in enumerate(players):
                            paid[place] += chance * reward[player]
                    rewards += paid
                    first_outcome.append(len(successors))
                first_round.append(len(first_outcome) - 1)
                if len(numbers) > max_states:
                    told = "" if rounds is None else f" within {rounds} rounds"
                    raise ValueError(f"more than {max_states:,} states can be reached{told}: {too_many}")
            frontier = reached
            within.append(len(numbers))
        return cls(
            numbers=numbers,
            starts=first,
            within=tuple(within),
            rounds=rounds if frontier else None,
            decisions=tuple(decisions),
            first_round=np.array(first_round, dtype=np.intp),
            rewards=np.array(rewards, dtype=np.float64).reshape(-1, len(players)),
            first_outcome=np.array(first_outcome, dtype=np.intp),
            chances=np.array(chances, dtype=np.float64),
            successors=np.array(successors, dtype=np.intp),
        )

    def round_values(self, rewards: Floats, after: Floats, states: int | None = None) -> Floats:
        """Return what the rounds of the first ``states`` states pay and the values of the states after them add up to.

        ``rewards`` are (rounds, ...); ``after``, (states + 1, ...), ends with the value of the end, 0.
        """
        rounds = self.first_round[-1 if states is None else states]
        outcomes = self.first_outcome[rounds]
        chances = self.chances[:outcomes].reshape(-1, *[1] * (after.ndim - 1))
        worths = chances * after[self.successors[:outcomes]]
        if after.ndim == 1:  # added up in order, so that the rounding is that of a loop over them
            return np.asarray(rewards[:rounds] + np.bincount(self._round_of[:outcomes], worths, rounds))
        return np.asarray(rewards[:rounds] + np.add.reduceat(worths, self.first_outcome[:rounds]))

    @cached_property
    def _round_of(self) -> Indices:
        """The number of the round of every outcome. Shape (outcomes,)."""
        return np.repeat(np.arange(len(self.rewards)), np.diff(self.first_outcome))


_SETTLED = 1e-12  # without a limit of steps, values that a round changes by no more than this are taken as final
_MOST_ROUNDS = 100_000  # values that still change after so many rounds are said not to settle


class BackwardInduction:
    """The first player's values in the states within reach of one, for every number of steps; one moves in each.

    One round is backed up for all states at once: ``V_0 = 0``, ``V_h(s) = best over a of sum p (r + V_{h-1}(s'))``,
    where "best" is the largest for a player that wants the return to be large and the smallest for its opponent.
    """

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
