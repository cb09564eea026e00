"""Tic-tac-toe: three in a row on a board of three by three.

A state is the board, a string of nine characters row by row from the top; whose turn it is follows from their number.
"""

from functools import lru_cache

from textgames.bases import FREE, MARKS, BoardDuel, ListedStarts
from textgames.texts.grids import board_rows

CELLS = ("a3", "b3", "c3", "a2", "b2", "c2", "a1", "b1", "c1")
"""The cells' names, row by row from the top: a letter for the column and a number for the row, as in chess."""
_LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
_INDEX = {name: cell for cell, name in enumerate(CELLS)}

# All functions of a board are remembered: there are 5,478 boards that can come up.


@lru_cache(maxsize=8192)
def result(board: str) -> float | None:
    """Return 1 if X has won, -1 if O has, 0 on a full board without a winner, else ``None``."""
    won = next((board[a] for a, b, c in _LINES if FREE != board[a] == board[b] == board[c]), FREE)
    return {"X": 1.0, "O": -1.0}.get(won, None if FREE in board else 0.0)


@lru_cache(maxsize=8192)
def free_cells(board: str) -> tuple[str, ...]:
    """Return the names of the free cells; none if the game is over."""
    if result(board) is not None:
        return ()
    return tuple(name for name, mark in zip(CELLS, board, strict=True) if mark == FREE)


@lru_cache(maxsize=8192)
def board_text(board: str) -> str:
    """Return the board as both players read it."""
    rows = [f"{3 - row} {' '.join(board[3 * row : 3 * row + 3])}" for row in range(3)]
    free = f"\nFree cells: {', '.join(free_cells(board))}" if free_cells(board) else ""
    return "\n".join(["Board (. is a free cell):", *rows, "  a b c"]) + free


class TicTacToe(BoardDuel[str], ListedStarts[str]):
    """Put marks on a board of three by three in turns; three in a row, column or diagonal win.

    Winning pays 1, losing -1, and a full board without a winner 0 for both. ``player_0`` plays X and begins.
    """

    actions = CELLS
    starts = (FREE * 9,)
    board_labels = ("a", "b", "c"), ("3", "2", "1")

    def mover(self, state: str) -> int:
        return (9 - state.count(FREE)) % 2

    def moves(self, state: str) -> tuple[str, ...]:
        return free_cells(state)

    def play(self, state: str, action: str) -> list[str]:
        cell = _INDEX[action]
        return [state[:cell] + MARKS[self.mover(state)] + state[cell + 1 :]]

    def result(self, state: str) -> float | None:
        return result(state)

    def observe(self, state: str, player: str) -> str:
        mark = MARKS[self.players.index(player)]
        return f"You play {mark}. {self.stands(state, player)}\n{board_text(state)}"

    def instructions(self, player: str) -> str:
        own = self.players.index(player)
        return (
            f"You are playing tic-tac-toe. You play {MARKS[own]}, your opponent plays {MARKS[1 - own]}; X begins. In "
            "turns each puts its mark on a free cell of a board of three by three.\n"
            "Three of your marks in a row, in a column or on a diagonal win. A full board without that is a draw.\n"
            "Winning gives a reward of 1, a draw 0, losing -1.\n"
            "A cell is named by its column (a, b, c from the left) and its row (1, 2, 3 from the bottom).\n"
            f"Actions, of which those of the free cells are legal: {', '.join(CELLS)}."
        )

    def shown(self, observation: str, player: str) -> str:
        board = "".join(line[2:].replace(" ", "") for line in observation.splitlines()[2:5])
        if len(board) != 9 or set(board) - {*MARKS, FREE}:
            raise ValueError("no board of three by three")
        return board

    def told(self, state: str, action: str, after: str) -> str:
        told, ended = f"put {MARKS[self.mover(state)]} on {action}", result(after)
        return told if ended is None else f"{told}; {'a draw' if ended == 0.0 else 'three in a row'}"

    def board(self, state: str) -> tuple[str, ...]:
        return board_rows(state, 3)
