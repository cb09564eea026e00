"""How hard a game is with some settings: the share of moves that may go wrong before half of the headroom is lost.

A share of the best player's moves is drawn anew, every legal one with equal chances; the player knows that and plays as
well as it can. What it gets is exact, by dynamic programming::

    V_0 = 0,   V_h(s) = (1 - slips) max_a Q_h(s, a) + slips mean_a Q_h(s, a),   Q_h(s, a) = E[r + V_{h-1}(s')]

The *tolerance* of a game is the share at which that is halfway between the optimum and blind play
(:mod:`textgames.solving.blind`). It is the same scale for every solved game, and unlike blind play's share it still
falls where the hardest settings leave blind play nothing. Beside it: the *depth*, the fewest rounds that a player has
to look ahead to keep half of the headroom, and the number of states.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textgames import TSMG, Outcome
from textgames.exploration import LOST_GUESSES, GuessNumber
from textgames.solving import END, Floats, Indices, StateSpace

STREAM = 0x1ADDE5
"""Starts are drawn by the seeds ``[STREAM, 0]``, ``[STREAM, 1]`` and so on, which no episode of a scenario has."""

MOST_STATES = 3_000_000
TIE = 1e-9  # values that differ by no more are equal
STEPS = 16  # halvings of [0, 1] in which the tolerance is found


class Measured(NamedTuple):
    """What is known of some settings. Returns are means over starts."""

    optimum: float
    tolerance: float
    states: int
    depth: int | None


def measure(game: TSMG[Any], horizon: int, blind: float, starts: int) -> Measured:
    """Measure a game for one player, in which the best blind player gets ``blind``, on so many drawn ``starts``."""
    solved = solve(game, horizon, starts)
    optimum = solved.value(0.0)
    half = (optimum + blind) / 2
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if solved.value(middle) >= half else (low, middle)
    gets: float | None = 0.0
    few, enough = 0, horizon
    while enough - few > 1:  # looking farther never gets less, but for ties
        rounds = (few + enough) // 2
        if (gets := solved.looking_ahead(rounds)) is None:
            break
        few, enough = (few, rounds) if gets >= half else (rounds, enough)
    return Measured(optimum, low, round(solved.states), None if gets is None else enough)


def solve(game: TSMG[Any], horizon: int, starts: int) -> "Listed | Guessing":
    """Return a game's solver; a ValueError if there is none, or too many states."""
    if isinstance(game, GuessNumber):
        return Guessing(game)
    if game.hidden_information:
        raise ValueError(f"no solver of {type(game).__name__} with slips is registered")
    return Listed(game, horizon, starts)


class Listed:
    """A game whose actions are listed and which hides nothing, on its states."""

    def __init__(self, game: TSMG[Any], horizon: int, starts: int) -> None:
        drawn = [game.initial_state(np.random.default_rng([STREAM, number])) for number in range(starts)]

        def outcomes(state: Any, joint_action: Mapping[str, str]) -> Sequence[Outcome[Any]]:
            """Return those of the game, in states that don't count moves, as the horizon does that."""
            found = game.outcomes(state, joint_action)
            counted = "moves" in getattr(state, "_fields", ())
            return [(p, s._replace(moves=0), r, over) for p, s, r, over in found] if counted else found

        self._space = space = StateSpace.of(game, drawn, horizon, MOST_STATES, outcomes=outcomes)
        self._horizon = horizon
        self._counts = np.diff(space.first_round)
        self.states = float(np.mean([self._within_reach(start) for start in set(space.starts)]))
        self._best: list[NDArray[np.bool_]] = []  # of 1, 2, ... rounds left: which actions are the best

    def value(self, slips: float) -> float:
        """Return the mean return over the starts of the best player whose moves slip."""
        return float(self.start_values(slips).mean())

    def start_values(self, slips: float) -> Floats:
        """Return what each start is worth to the best player whose moves slip, shape (starts,)."""

        def chosen(worth: Floats, first: Indices, rounds_left: int) -> Floats:
            mean = np.add.reduceat(worth, first) / self._counts[: len(first)]
            return (1 - slips) * np.maximum.reduceat(worth, first) + slips * mean

        return self._solved(chosen)

    def looking_ahead(self, rounds: int) -> float | None:
        """Return the mean return of the player that looks so many rounds ahead."""

        def noting_the_best(worth: Floats, first: Indices, rounds_left: int) -> Floats:
            largest = np.maximum.reduceat(worth, first)
            self._best.append(worth >= np.repeat(largest, self._counts[: len(first)]) - TIE)
            return largest

        def chosen(worth: Floats, first: Indices, rounds_left: int) -> Floats:
            good = self._best[min(rounds, rounds_left) - 1][: len(worth)]
            return np.add.reduceat(worth * good, first) / np.add.reduceat(good, first, dtype=np.intp)

        if not self._best:
            self._solved(noting_the_best)
        return float(self._solved(chosen).mean())

    def _within_reach(self, start: int) -> int:
        """Return how many states may follow a start before the horizon, itself included; others may share them."""
        space = self._space
        first = space.first_outcome[space.first_round]  # where the outcomes of each state begin, and the last ones end
        seen = np.zeros(len(space.numbers) + 1, dtype=np.bool_)
        seen[[start, END]] = True
        newest = np.array([start])
        for _ in range(self._horizon):
            counts = first[newest + 1] - first[newest]
            outcomes = np.repeat(first[newest] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
            after = np.unique(space.successors[outcomes])
            newest = after[~seen[after]]
            seen[newest] = True
            newest = newest[newest < len(first) - 1]
        return int(seen.sum()) - 1

    def _solved(self, chosen: Callable[[Floats, Indices, int], Floats]) -> Floats:
        """Return the values of the starts; ``chosen`` makes the values of states of those of their actions."""
        space, rewards = self._space, self._space.rewards[:, 0]
        values = np.zeros(space.within[-1] + 1)  # the last place is the end's
        for left in range(1, self._horizon + 1):
            # needed only so far from the starts as the others can be reached in time
            states = space.within[-1 if space.rounds is None else space.rounds - left]
            worth = space.round_values(rewards, values, states)
            values = np.append(chosen(worth, space.first_round[:states], left), 0.0)
        return np.asarray(values[list(space.starts)])


class Guessing:
    """Guessing a number: what is possible is an interval, and a slip is a guess of any number."""

    def __init__(self, game: GuessNumber) -> None:
        self._numbers, self._guesses = len(game.secrets), game.max_guesses
        self.states = float(self._numbers)

    def value(self, slips: float) -> float:
        """Return ``V_h(n)`` of the ``n`` numbers that are possible, with ``h`` guesses left.

        Guessing the ``k``-th leaves ``k - 1`` or ``n - k`` with chances in proportion; a guess outside leaves ``n``.
        """
        sizes = np.arange(1, self._numbers + 1)
        after = np.append(0.0, np.full(self._numbers, -float(LOST_GUESSES)))
        for _ in range(self._guesses):
            left = sizes * after[1:]  # what n numbers come to in all
            left = np.append(0.0, left)
            best, mean = np.empty(self._numbers), np.empty(self._numbers)
            for n in sizes:
                inside = (left[:n] + left[n - 1 :: -1][:n]) / n
                best[n - 1] = max(inside.max(), after[n])
                mean[n - 1] = (inside.sum() + (self._numbers - n) * after[n]) / self._numbers
            after = np.append(0.0, -1 + (1 - slips) * best + slips * mean)
        return float(after[-1])

    def looking_ahead(self, rounds: int) -> None:
        return None
