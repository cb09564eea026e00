"""Nim: take counters from one of several heaps; the player who takes the last one wins, or in misère play loses.

Solved by C. L. Bouton, "Nim, a game with a complete mathematical theory", Annals of Mathematics 3 (1901): the player to
move loses, both playing perfectly, if the heaps' sizes written in binary add up to 0 without carrying (their exclusive
or). In misère play the same holds, except that with no heap above 1 it is the other way round.
"""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from textgames.bases import BoardDuel

HEAP_NAMES = "abcdefgh"
_READ_HEAP = re.compile(r"^Heap ([a-h]): (\d+)\b", re.MULTILINE)


class NimState(NamedTuple):
    """The heaps' sizes, and the number of the player whose turn it is."""

    heaps: tuple[int, ...]
    mover: int


# What follows from the heaps alone is remembered, as both players are told of the same ones several times in a round.


@lru_cache(maxsize=4096)
def moves_of(heaps: tuple[int, ...]) -> tuple[str, ...]:
    """Return all that can be taken: by heap, then by the number of counters."""
    return tuple(
        f"take {count} from {name}"
        for name, size in zip(HEAP_NAMES, heaps, strict=False)
        for count in range(1, size + 1)
    )


@lru_cache(maxsize=4096)
def heap_lines(heaps: tuple[int, ...]) -> str:
    """Return the heaps as players read them: a line each, with their counters as strokes."""
    named = zip(HEAP_NAMES, heaps, strict=False)
    return "\n".join([f"Heap {name}: {size} {'|' * size}".rstrip() for name, size in named])


class Nim(BoardDuel[NimState]):
    """Take any number of counters from one heap, in turns; the player who takes the last counter of all wins.

    Winning pays 1, losing -1. ``player_0`` begins.

    Args:
        heaps: the sizes of one to eight heaps, each 1 to 20.
        random_heaps: each heap's size is drawn at every reset, between 1 and its number in ``heaps``.
        misere: the player who takes the last counter loses instead.
    """

    def __init__(self, *, heaps: Sequence[int] = (3, 4, 5), random_heaps: bool = False, misere: bool = False) -> None:
        sizes = tuple(heaps) if isinstance(heaps, Collection) else ()
        whole = all(isinstance(size, int | np.integer) and not isinstance(size, bool) for size in sizes)
        if not whole or not 1 <= len(sizes) <= len(HEAP_NAMES) or not all(1 <= size <= 20 for size in sizes):
            raise ValueError(f"heaps must be one to eight whole numbers from 1 to 20, got {heaps!r}")
        self.heaps = tuple(int(size) for size in sizes)
        self.longest_episode = sum(self.heaps)
        self.random_heaps, self.misere = bool(random_heaps), bool(misere)
        self.actions = moves_of(self.heaps)
        self._moves = {  # the heap and the number of counters
            name: (HEAP_NAMES.index(name[-1]), int(name.split()[1])) for name in self.actions
        }

    def initial_state(self, rng: Generator) -> NimState:
        if self.random_heaps:
            return NimState(tuple(int(rng.integers(1, size + 1)) for size in self.heaps), 0)
        return NimState(self.heaps, 0)

    def initial_outcomes(self) -> list[tuple[float, NimState]]:
        drawn: list[tuple[int, ...]] = [()]
        for size in self.heaps:
            drawn = [
                (*before, own) for before in drawn for own in (range(1, size + 1) if self.random_heaps else [size])
            ]
        return [(1 / len(drawn), NimState(heaps, 0)) for heaps in drawn]

    def moves(self, state: NimState) -> tuple[str, ...]:
        return moves_of(state.heaps)

    def play(self, state: NimState, action: str) -> list[NimState]:
        heap, count = self._moves[action]
        heaps = state.heaps
        return [NimState((*heaps[:heap], heaps[heap] - count, *heaps[heap + 1 :]), 1 - state.mover)]

    def result(self, state: NimState) -> float | None:
        if any(state.heaps):
            return None
        # who is to move has not taken the last counter
        return 1.0 if (state.mover == 1) != self.misere else -1.0

    def observe(self, state: NimState, player: str) -> str:
        if not any(state.heaps):
            won = self.succeeded(state, player)
            return f"The game is over, no counter is left: you have {'won' if won else 'lost'}."
        turn = "It is your turn." if self.players[state.mover] == player else "It is your opponent's turn."
        return f"{turn}\n{heap_lines(state.heaps)}"

    def instructions(self, player: str) -> str:
        largest = max(range(len(self.heaps)), key=lambda heap: self.heaps[heap])
        has = "has at most" if self.random_heaps else "has"
        heaps = ", ".join(f"heap {name} {has} {size}" for name, size in zip(HEAP_NAMES, self.heaps, strict=False))
        return (
            f"You are playing Nim against an opponent. There are heaps of counters; at the start {heaps}. In turns "
            "each player takes one or more counters, as many as it likes, all of them from one heap.\n"
            f"Whoever takes the last counter of all {'loses' if self.misere else 'wins'}. "
            f"You {'begin' if player == 'player_0' else 'play second'}.\n"
            "Winning gives a reward of 1, losing -1.\n"
            f'An action says how many counters to take and from which heap: "take 1 from {HEAP_NAMES[largest]}".\n'
            f"Actions, of which those are legal that the heaps are large enough for: {', '.join(self.actions)}."
        )

    def shown(self, observation: str, player: str) -> NimState:
        sizes = tuple(int(size) for _, size in _READ_HEAP.findall(observation))
        if not all(size <= most for size, most in zip(sizes, self.heaps, strict=True)):
            raise ValueError("a heap is larger than at the start")
        own = self.players.index(player)
        return NimState(sizes, own if observation.startswith("It is your turn.") else 1 - own)

    def told(self, state: NimState, action: str, after: NimState) -> str:
        return "" if any(after.heaps) else "took the last counter"

    def describe(self, state: NimState) -> str:
        turn = f"{self.players[state.mover]} is to move" if any(state.heaps) else "no counter is left"
        lines = [f"{name} {'|' * size}".rstrip() for name, size in zip(HEAP_NAMES, state.heaps, strict=False)]
        return "\n".join([*lines, turn])
