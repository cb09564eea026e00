"""What lies on a board, seen in a mirror or under other names: cells, directions, and the drawn board itself.

A cell is ``(x, y)`` from ``(0, 0)`` at the bottom left. Rows of a drawn board come from the top.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

from textgames.twins.phrases import Kind, by_alphabet

Cell = tuple[int, int]
WAYS: tuple[Cell, ...] = ((-1, 0), (1, 0), (0, -1), (0, 1))
"""The directions in the order in which a vocabulary names them: left, right, down, up."""


class Symmetry(NamedTuple):
    """One of the eight ways to look at a square board, or of the four at one that is longer than wide."""

    width: int
    height: int
    flip_x: bool = False
    flip_y: bool = False
    swap: bool = False

    @classmethod
    def all_of(cls, width: int, height: int) -> "list[Symmetry]":
        swaps = (False, True) if width == height else (False,)
        flips = (False, True)
        return [cls(width, height, *each) for each in product(flips, flips, swaps)]

    def cell(self, at: Cell) -> Cell:
        x, y = at
        x, y = (self.width - 1 - x if self.flip_x else x), (self.height - 1 - y if self.flip_y else y)
        return (y, x) if self.swap else (x, y)

    def way(self, step: Cell) -> Cell:
        x, y = (-step[0] if self.flip_x else step[0]), (-step[1] if self.flip_y else step[1])
        return (y, x) if self.swap else (x, y)

    def cells(self) -> list[Cell]:
        return list(product(range(self.width), range(self.height)))


def cells_kind(form: str, symmetry: Symmetry) -> Kind:
    """Return cells as a form says them: ``{x}/{y}`` from 0, ``{x1}`` and ``{y1}`` from 1, ``{X}`` as a letter."""
    names = {f"({x}, {y})": name_of_cell(form, symmetry.cell((x, y))) for x, y in symmetry.cells()}
    back = {twin: own for own, twin in names.items()}
    shapes = {"{x}": r"\d+", "{y}": r"\d+", "{x1}": r"\d+", "{y1}": r"\d+", "{X}": "[A-Z]"}
    parts = re.split(r"(\{\w+\})", form)
    pattern = "".join(shapes.get(part, re.escape(part)) for part in parts)
    return Kind(r"\(\d+, \d+\)", pattern, names.__getitem__, back.__getitem__)


def name_of_cell(form: str, at: Cell) -> str:
    """Return the name that a form gives a cell."""
    x, y = at
    return form.format(x=x, y=y, x1=x + 1, y1=y + 1, X=chr(ord("A") + x))


class Drawing(NamedTuple):
    """How the original draws its board, and how the twin tells of it."""

    # what stands around the original's rows: ``"plain"``, ``"numbered"`` with the columns' numbers below, or
    # ``"chess"`` with numbers before the rows and letters below
    frame: str
    # the twin's way: ``"rows"``; ``"columns"``, each from the bottom without its empty cells; or ``"lists"`` of the
    # cells that each symbol is on
    view: str
    line: str  # in the last two, one line of it: ``"{who}: {what}"``
    empty: str  # the symbol of an empty cell, which the last two don't tell
    nothing: str  # what they say of nothing
    symbols: Mapping[str, str]  # the symbols' kind
    names: Mapping[str, str]  # the kind of what columns or cells are called
    cells: Sequence[str]  # what cells are called in the original, row by row from the top
    symmetry: Symmetry  # how the board is seen, in the view ``"rows"``

    def kind(self) -> Kind:
        symbol = "[" + re.escape("".join(self.symbols)) + "]"
        row = rf"{symbol}(?: {symbol})*"
        own = {
            "plain": rf"{row}(?:\n{row})*",
            "numbered": rf"(?:{row}\n)+\d+(?: \d+)*",
            "chess": rf"(?:\d+ {row}\n)+  [a-z](?: [a-z])*",
        }[self.frame]
        if self.view == "rows":
            seen = "[" + re.escape("".join(self.symbols.values())) + "]"
            twin = rf"{seen}(?: {seen})*(?:\n{seen}(?: {seen})*)*"
            return Kind(own, twin, self._as_rows, self._of_rows)
        # all lines are there, in their order, so that each one's name is fixed
        lines = [re.escape(self.line.format(who=who, what="\0")).replace("\0", "[^\n]*") for who in self._headings()]
        return Kind(own, r"\n".join(lines), self._as_lines, self._of_lines)

    def _headings(self) -> list[str]:
        if self.view == "columns":
            return list(self.names.values())
        return [twin for own, twin in self.symbols.items() if own != self.empty]

    # ---- the original's drawing, as {cell: symbol}

    def _read(self, text: str) -> dict[Cell, str]:
        rows = text.split("\n")
        if self.frame != "plain":
            rows = rows[:-1]
        marks = [row.split(" ")[1:] if self.frame == "chess" else row.split(" ") for row in rows]
        return {(x, len(rows) - 1 - y): mark for y, row in enumerate(marks) for x, mark in enumerate(row)}

    def _write(self, board: Mapping[Cell, str], width: int, height: int) -> str:
        rows = [" ".join(board[x, y] for x in range(width)) for y in range(height - 1, -1, -1)]
        if self.frame == "numbered":
            rows.append(" ".join(str(x + 1) for x in range(width)))
        if self.frame == "chess":
            rows = [f"{height - y} {row}" for y, row in enumerate(rows)]
            rows.append("  " + " ".join(chr(ord("a") + x) for x in range(width)))
        return "\n".join(rows)

    # ---- rows

    def _as_rows(self, text: str) -> str:
        board = {self.symmetry.cell(at): self.symbols[mark] for at, mark in self._read(text).items()}
        width, height = max(x for x, _ in board) + 1, max(y for _, y in board) + 1
        return "\n".join(" ".join(board[x, y] for x in range(width)) for y in range(height - 1, -1, -1))

    def _of_rows(self, text: str) -> str:
        back = {twin: own for own, twin in self.symbols.items()}
        rows = [row.split(" ") for row in text.split("\n")]
        seen = {(x, len(rows) - 1 - y): back[mark] for y, row in enumerate(rows) for x, mark in enumerate(row)}
        board = {at: seen[self.symmetry.cell(at)] for at in self.symmetry.cells()}
        return self._write(board, self.symmetry.width, self.symmetry.height)

    # ---- columns and lists: one line each

    def _as_lines(self, text: str) -> str:
        board = self._read(text)
        told = {heading: list[str]() for heading in self._headings()}
        if self.view == "columns":
            names = list(self.names.values())
            for x, y in sorted(board):
                if board[x, y] != self.empty:
                    told[names[x]].append(self.symbols[board[x, y]])
        else:
            for (x, y), name in zip(self._reading_order(), self.cells, strict=True):
                if board[x, y] != self.empty:
                    told[self.symbols[board[x, y]]].append(self.names[name])
            told = {who: sorted(what, key=by_alphabet) for who, what in told.items()}
        return "\n".join(self.line.format(who=who, what=", ".join(what) or self.nothing) for who, what in told.items())

    def _of_lines(self, text: str) -> str:
        width, height = self.symmetry.width, self.symmetry.height
        board = dict.fromkeys(self.symmetry.cells(), self.empty)
        back = {twin: own for own, twin in self.symbols.items()}
        at = dict(zip([self.names[name] for name in self.cells], self._reading_order(), strict=True))
        for number, (line, who) in enumerate(zip(text.split("\n"), self._headings(), strict=True)):
            before, after = self.line.format(who=who, what="\0").split("\0")
            what = line[len(before) : len(line) - len(after)]
            for index, word in enumerate(() if what == self.nothing else what.split(", ")):
                if self.view == "columns":
                    board[number, index] = back[word]
                else:
                    board[at[word]] = back[who]
        return self._write(board, width, height)

    def _reading_order(self) -> list[Cell]:
        """Return the cells row by row from the top, as their names come; none if cells have no names."""
        width, height = self.symmetry.width, self.symmetry.height
        return [(x, y) for y in range(height - 1, -1, -1) for x in range(width)] if self.cells else []
