"""What the text observations of board games share: the first line, the names of cells, and the layout of a grid.

Cells are numbered row by row from the top left, as the rows are written. In text ``(0, 0)`` is the bottom left cell.
"""

import re
from functools import lru_cache

_BOARD = re.compile(r"\bBoard: (\d+) wide, (\d+) high\b")


def board_line(ncol: int, nrow: int) -> str:
    """Return the first line of an observation: the size of the board and the convention of its coordinates."""
    return f"Board: {ncol} wide, {nrow} high. (0, 0) is the bottom left corner, X grows right, Y grows up."


def board_size(text: str) -> tuple[int, int] | None:
    """Read ``(width, height)`` back from a text that holds a :func:`board_line`; ``None`` if it holds none."""
    found = _BOARD.search(text)
    return (int(found[1]), int(found[2])) if found else None


@lru_cache(maxsize=64)
def coordinates_of(nrow: int, ncol: int) -> tuple[str, ...]:
    """Return the name ``"(x, y)"`` of every cell of a board."""
    return tuple(f"({x}, {y})" for y in range(nrow - 1, -1, -1) for x in range(ncol))


@lru_cache(maxsize=64)
def name_rows(nrow: int, ncol: int) -> dict[str, int]:
    """Return the cell of every name, the inverse of :func:`coordinates_of`: ``{"(x, y)": cell}``."""
    return {name: cell for cell, name in enumerate(coordinates_of(nrow, ncol))}


def board_rows(marks: str, ncol: int) -> tuple[str, ...]:
    """Cut the marks of a board, row by row from the top, into its rows."""
    return tuple(marks[start : start + ncol] for start in range(0, len(marks), ncol))


def grid_rows(marks: str, ncol: int, axes: bool) -> tuple[str, tuple[int, ...]]:
    """Write a board as rows of marks separated by spaces, and tell where each cell's mark stands in the text.

    ``marks`` are row by row from the top. With ``axes``, each row's Y stands before it and the X below the columns,
    which are then as wide as the largest X.
    """
    nrow = len(marks) // ncol
    if not axes:
        form, offsets = _plain(nrow, ncol)
        return form % tuple(marks), offsets
    rows = board_rows(marks, ncol)
    cell, margin = len(str(ncol - 1)), len(str(nrow - 1))
    lines = [f"{nrow - 1 - y:>{margin}} " + " ".join(f"{mark:>{cell}}" for mark in row) for y, row in enumerate(rows)]
    lines.append(" " * (margin + 1) + " ".join(f"{x:>{cell}}" for x in range(ncol)))
    width, first = len(lines[0]) + 1, margin + cell
    offsets = tuple(row * width + first + column * (cell + 1) for row in range(nrow) for column in range(ncol))
    return "\n".join(lines), offsets


@lru_cache(maxsize=64)
def _plain(nrow: int, ncol: int) -> tuple[str, tuple[int, ...]]:
    # a row of n marks has n - 1 spaces and a line end: cell i stands at 2 * i
    return "\n".join([" ".join(["%s"] * ncol)] * nrow), tuple(range(0, 2 * nrow * ncol, 2))
