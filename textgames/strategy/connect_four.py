"""Connect Four on boards of any size: drop discs into columns; four in a row win.

A board is two whole numbers, one a player, with one bit a cell. The bits of a column stand together, from the bottom
up, and above them is one that stays 0, so that a row of discs never runs on from one column into the next.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np

from textgames.solving.minimax import Minimax
from textgames.strategy.duel import PLAYERS, Duel

MARKS = "XO"
FREE = "."
_NUMBERS = {3: "Three", 4: "Four", 5: "Five"}
_KEY = "Board (. is a free cell, the numbers are the columns):"
MOST_CELLS_SOLVED = 16
"""The largest board that is solved exactly: 4 by 4 has 161,029 positions, 5 by 4 ten times as many."""


class ConnectFourState(NamedTuple):
    """The discs of the first and of the second player, one bit a cell."""

    first: int = 0
    second: int = 0

    @property
    def mover(self) -> int:
        return (self.first | self.second).bit_count() % 2


def has_row(discs: int, stride: int, connect: int) -> bool:
    """Whether ``connect`` of a player's discs are in a row; ``stride`` is the number of bits of a column."""
    for step in (1, stride, stride - 1, stride + 1):  # upwards, to the right, and the two diagonals
        rows = discs
        for along in range(1, connect):
            rows &= discs >> step * along
        if rows:
            return True
    return False


class ConnectFour(Duel[ConnectFourState]):
    """Drop discs into the columns of an upright board in turns; four in a row, column or diagonal win.

    Winning pays 1, losing -1, and a full board without a winner 0 for both. ``player_0`` plays X and begins.

    Args:
        rows: height of the board, 1 to 12.
        columns: its width, 1 to 12.
        connect: how many in a row win, at least 2.

    Raises:
        ValueError: a size outside of its range, or a board on which nobody could win.
    """

    palette: ClassVar[Mapping[str, tuple[int, int, int]]] = {
        "X": (213, 94, 0),
        "O": (0, 114, 178),
        FREE: (235, 235, 235),
    }
    legend: ClassVar[Mapping[str, str]] = {"X": "player_0", "O": "player_1", FREE: "free"}

    def __init__(self, *, rows: int = 6, columns: int = 7, connect: int = 4) -> None:
        for name, value, least in (("rows", rows, 1), ("columns", columns, 1), ("connect", connect, 2)):
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not whole or not least <= value <= 12:
                raise ValueError(f"{name} must be a whole number from {least} to 12, got {value!r}")
        if connect > max(rows, columns):
            raise ValueError(f"nobody can connect {connect} on a board of {rows} rows and {columns} columns")
        self.rows, self.columns, self.connect = int(rows), int(columns), int(connect)
        self.actions = tuple(str(column) for column in range(1, self.columns + 1))
        stride = self._stride = self.rows + 1
        self._column_bits = (1 << self.rows) - 1
        # by the action: the bits of its column, and the lowest one
        self._columns = {
            action: (self._column_bits << column * stride, 1 << column * stride)
            for column, action in enumerate(self.actions)
        }
        self._tops = tuple((action, 1 << column * stride + rows - 1) for column, action in enumerate(self.actions))
        self._top_row = sum(top for _, top in self._tops)
        self._width = len(self.actions[-1])
        self._foot = " ".join(f"{action:>{self._width}}" for action in self.actions)
        self._cells = tuple(  # the bit of every cell, row by row from the top
            1 << column * stride + row for row in range(self.rows - 1, -1, -1) for column in range(self.columns)
        )

    def initial_state(self, rng: np.random.Generator) -> ConnectFourState:
        return ConnectFourState()

    def initial_outcomes(self) -> list[tuple[float, ConnectFourState]]:
        return [(1.0, ConnectFourState())]

    def mover(self, state: ConnectFourState) -> int:
        return state.mover

    def moves(self, state: ConnectFourState) -> tuple[str, ...]:
        taken = state.first | state.second
        return tuple([action for action, top in self._tops if not taken & top])

    def play(self, state: ConnectFourState, action: str) -> ConnectFourState:
        first, second = state
        column, lowest = self._columns[action]
        disc = ((first | second) & column) + lowest  # adding the lowest bit carries over the discs that lie there
        return ConnectFourState(first, second | disc) if state.mover else ConnectFourState(first | disc, second)

    def result(self, state: ConnectFourState) -> float | None:
        first, second = state
        # only who moved last can have connected
        if state.mover:
            if has_row(first, self._stride, self.connect):
                return 1.0
        elif has_row(second, self._stride, self.connect):
            return -1.0
        return None if (first | second) & self._top_row != self._top_row else 0.0

    def mirrored(self, state: ConnectFourState) -> ConnectFourState:
        """The board with left and right exchanged, which is worth the same."""
        last, column = (self.columns - 1) * self._stride, self._column_bits
        first, second = state
        mirrored_first = mirrored_second = 0
        for shift in range(0, last + 1, self._stride):
            mirrored_first |= (first >> shift & column) << last - shift
            mirrored_second |= (second >> shift & column) << last - shift
        return ConnectFourState(mirrored_first, mirrored_second)

    # ---------------------------------------------------------------- texts

    def board(self, state: ConnectFourState) -> tuple[str, ...]:
        first, second = state
        marks = "".join([MARKS[0] if first & cell else MARKS[1] if second & cell else FREE for cell in self._cells])
        return tuple([marks[start : start + self.columns] for start in range(0, len(marks), self.columns)])

    def observe(self, state: ConnectFourState, player: str) -> str:
        own, result = PLAYERS.index(player), self.result(state)
        if result is not None:
            turn = "a draw" if result == 0.0 else f"{MARKS[0] if result > 0 else MARKS[1]} has won"
            turn = f"The game is over: {turn}."
        else:
            turn = "It is your turn." if state.mover == own else f"It is the turn of {MARKS[1 - own]}."
        rows = "\n".join([" ".join([f"{mark:>{self._width}}" for mark in row]) for row in self.board(state)])
        text = f"You play {MARKS[own]}. {turn}\n{_KEY}\n{rows}\n{self._foot}"
        return text if result is not None else f"{text}\nColumns with room: {', '.join(self.moves(state))}"

    def instructions(self, player: str) -> str:
        own = PLAYERS.index(player)
        return (
            f"You are playing Connect {_NUMBERS.get(self.connect, self.connect)} on an upright board of "
            f"{self.columns} columns and {self.rows} rows. You play {MARKS[own]}, your opponent plays "
            f"{MARKS[1 - own]}; X begins. In turns each drops a disc into a column, where it falls to the lowest free "
            "cell.\n"
            f"{self.connect} of your discs in a row, in a column or on a diagonal, without a gap, win. A full board "
            "without that is a draw.\n"
            "Winning gives a reward of 1, a draw 0, losing -1.\n"
            "Actions, the numbers of the columns from the left, of which those are legal that have room: "
            f"{', '.join(self.actions)}."
        )

    def read_observation(self, observation: str, player: str) -> ConnectFourState:
        lines = observation.splitlines()[2 : 2 + self.rows]
        marks = "".join(lines).replace(" ", "")
        bits = {mark: sum(cell for cell, at in zip(self._cells, marks, strict=False) if at == mark) for mark in MARKS}
        state = ConnectFourState(bits[MARKS[0]], bits[MARKS[1]])
        if len(marks) != len(self._cells) or self.observe(state, player) != observation:
            raise ValueError(f"not an observation of this Connect Four for {player}: {observation[:80]!r}")
        return state

    def what_happened(
        self, state: ConnectFourState, joint_action: Mapping[str, str], next_state: ConnectFourState, player: str
    ) -> str:
        if self.to_move(state) != (player,):
            return ""
        told, ended = f"{MARKS[state.mover]} dropped into column {joint_action[player]}", self.result(next_state)
        return told if ended is None else f"{told}; {'a draw' if ended == 0.0 else f'connected {self.connect}'}"


def minimax(game: ConnectFour) -> Minimax:
    """The yardstick: exact minimax, a board and its mirror image solved as one. Equal games share it.

    Raises:
        ValueError: the board is too large to be solved in seconds.
    """
    if game.rows * game.columns > MOST_CELLS_SOLVED:
        raise ValueError(
            f"Connect Four is solved exactly on boards of at most {MOST_CELLS_SOLVED} cells, this one has "
            f"{game.rows * game.columns}"
        )
    return _solver(game.rows, game.columns, game.connect)


@lru_cache(maxsize=4)
def _solver(rows: int, columns: int, connect: int) -> Minimax:
    # solving 4 by 4 takes seconds, and a benchmark has a game object for each of the episodes that it plays at once
    game = ConnectFour(rows=rows, columns=columns, connect=connect)
    return Minimax(game, canonical=lambda state: min(state, game.mirrored(state)))
