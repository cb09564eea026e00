"""Connect Four on boards of any size: drop discs into columns; four in a row win.

A board is two whole numbers, one a player, with one bit a cell. The bits of a column stand together, from the bottom
up, and above them is one that stays 0, so that a row of discs never runs on from one column into the next.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from textgames.bases import FREE, MARKS, BoardDuel, ListedStarts
from textgames.settings import check_whole
from textgames.solving.minimax import Minimax
from textgames.texts.grids import board_rows

_NUMBERS = {3: "Three", 4: "Four", 5: "Five"}
_KEY = "Board (. is a free cell, the numbers are the columns):"
MOST_CELLS_SOLVED = 16
"""The largest board that is solved exactly: 4 by 4 has 161,029 positions, 5 by 4 ten times as many."""


class ConnectFourState(NamedTuple):
    """A board, and how the game stands on it, which is known from the last disc on."""

    first: int = 0  # first, second: the discs of the two players, one bit a cell
    second: int = 0
    result: float | None = None  # what the first player is paid at the end, 1, 0 or -1; ``None`` before

    @property
    def mover(self) -> int:
        return (self.first | self.second).bit_count() % 2


def has_row(discs: int, stride: int, connect: int) -> bool:
    """Return whether ``connect`` of a player's discs are in a row; ``stride`` is the number of bits of a column."""
    for step in (1, stride, stride - 1, stride + 1):  # upwards, to the right, and the two diagonals
        rows = discs
        for along in range(1, connect):
            rows &= discs >> step * along
        if rows:
            return True
    return False


class ConnectFour(BoardDuel[ConnectFourState], ListedStarts[ConnectFourState]):
    """Drop discs into the columns of an upright board in turns; four in a row, column or diagonal win.

    Winning pays 1, losing -1, and a full board without a winner 0 for both. ``player_0`` plays X and begins.

    Args:
        rows: height of the board, 1 to 12.
        columns: its width, 1 to 12.
        connect: how many in a row win, at least 2.
    """

    starts = (ConnectFourState(),)

    def __init__(self, *, rows: int = 6, columns: int = 7, connect: int = 4) -> None:
        for name, value, least in (("rows", rows, 1), ("columns", columns, 1), ("connect", connect, 2)):
            check_whole(name, value, least, 12)
        if connect > max(rows, columns):
            raise ValueError(f"no line of {connect} fits on a board of {rows} rows and {columns} columns")
        self.rows, self.columns, self.connect = int(rows), int(columns), int(connect)
        self.longest_episode = self.rows * self.columns
        self.actions = tuple(str(column) for column in range(1, self.columns + 1))
        stride = self._stride = self.rows + 1
        self._column_bits = (1 << self.rows) - 1
        # by the action: the bits of its column, and the lowest one
        self._columns = {
            action: (self._column_bits << column * stride, 1 << column * stride)
            for column, action in enumerate(self.actions)
        }
        self._tops = tuple((action, 1 << column * stride + self.rows - 1) for column, action in enumerate(self.actions))
        self._top_row = sum(top for _, top in self._tops)
        self._drawn: tuple[ConnectFourState | None, str] = (None, "")
        self._with_room: dict[int, tuple[str, ...]] = {}  # by the cells of the top row that are taken
        self._cells = tuple(  # the bit of every cell, row by row from the top
            1 << column * stride + row for row in range(self.rows - 1, -1, -1) for column in range(self.columns)
        )

    def moves(self, state: ConnectFourState) -> tuple[str, ...]:
        full = (state.first | state.second) & self._top_row
        found = self._with_room.get(full)
        if found is None:
            found = self._with_room[full] = tuple([action for action, top in self._tops if not full & top])
        return found

    def play(self, state: ConnectFourState, action: str) -> list[ConnectFourState]:
        first, second, _ = state
        column, lowest = self._columns[action]
        disc = ((first | second) & column) + lowest  # adding the lowest bit carries over the discs that lie there
        return [self._after(first, second | disc) if state.mover else self._after(first | disc, second)]

    def _after(self, first: int, second: int) -> ConnectFourState:
        """Return the state of a board on which only who moved last can have connected."""
        last_is_first = (first | second).bit_count() % 2
        if has_row(first if last_is_first else second, self._stride, self.connect):
            return ConnectFourState(first, second, 1.0 if last_is_first else -1.0)
        full = (first | second) & self._top_row == self._top_row
        return ConnectFourState(first, second, 0.0 if full else None)

    def result(self, state: ConnectFourState) -> float | None:
        return state.result

    def mirrored(self, state: ConnectFourState) -> ConnectFourState:
        """Return the board with left and right exchanged, which is worth the same."""
        last, column = (self.columns - 1) * self._stride, self._column_bits
        first, second, result = state
        mirrored_first = mirrored_second = 0
        for shift in range(0, last + 1, self._stride):
            mirrored_first |= (first >> shift & column) << last - shift
            mirrored_second |= (second >> shift & column) << last - shift
        return ConnectFourState(mirrored_first, mirrored_second, result)

    def board(self, state: ConnectFourState) -> tuple[str, ...]:
        first, second, _ = state
        marks = [MARKS[0] if first & bit else MARKS[1] if second & bit else FREE for bit in self._cells]
        return board_rows("".join(marks), self.columns)

    def observe(self, state: ConnectFourState, player: str) -> str:
        mark = MARKS[self.players.index(player)]
        text = f"You play {mark}. {self.stands(state, player)}\n{_KEY}\n{self._grid(state)}"
        return text if state.result is not None else f"{text}\nColumns with room: {', '.join(self.moves(state))}"

    def _grid(self, state: ConnectFourState) -> str:
        known, grid = self._drawn
        if known is not state:  # both players read the same board
            rows: list[Sequence[str]] = [*self.board(state), self.actions]
            if self.columns > 9:
                rows = [[mark.rjust(2) for mark in row] for row in rows]
            grid = "\n".join(map(" ".join, rows))
            self._drawn = state, grid
        return grid

    def instructions(self, player: str) -> str:
        own = self.players.index(player)
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

    def shown(self, observation: str, player: str) -> ConnectFourState:
        marks = "".join(observation.splitlines()[2 : 2 + self.rows]).replace(" ", "")
        first, second = [sum(cell for cell, at in zip(self._cells, marks, strict=True) if at == mark) for mark in MARKS]
        return self._after(first, second)

    def told(self, state: ConnectFourState, action: str, after: ConnectFourState) -> str:
        told, ended = f"dropped {MARKS[state.mover]} into column {action}", after.result
        return told if ended is None else f"{told}; {'a draw' if ended == 0.0 else f'connected {self.connect}'}"


def minimax(game: ConnectFour) -> Minimax:
    """Return exact minimax, with mirror images solved as one, or raise ValueError if the board is too large."""
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
