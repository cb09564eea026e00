"""The map of a game with headings and beams: where every step leads, and which cells a beam reaches. No rules.

Cells are numbered row by row from the top left, as :mod:`textgames.texts.grids` names them; a heading is a number of
quarter turns to the right from ``"up"``.
"""

from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import takewhile

from textgames.texts.grids import coordinates_of

HEADINGS = ("up", "right", "down", "left")
_OFFSETS = ((-1, 0), (0, 1), (1, 0), (0, -1))  # (rows, columns) of one step in each heading

WALL, FLOOR, START, APPLE, RIVER, DIRT = "#.PARD"
MARKS = {
    WALL: "wall",
    FLOOR: "floor",
    START: "a player's start",
    APPLE: "apple cell",
    RIVER: "river",
    DIRT: "river that is dirty at first",
}

Cells = tuple[int, ...]


class Board:
    """A map and the tables that are worked out from it once.

    Attributes:
        names: ``"(x, y)"`` of every cell.
        starts: where players begin; ``apples``, ``river`` and ``dirt`` (at first) likewise; all ascending.
        steps: ``steps[heading][cell]``: the cell one step ahead, or the same cell if a wall or the edge is in the way.
    """

    def __init__(self, rows: tuple[str, ...]) -> None:
        self.rows = rows
        self.nrow, self.ncol = len(rows), len(rows[0]) if rows else 0
        if not self.ncol or any(len(row) != self.ncol for row in rows):
            raise ValueError(f"a map has rows of one length, at least one cell, got {rows!r}")
        self.tiles = "".join(rows)
        if unknown := sorted(set(self.tiles) - set(MARKS)):
            known = ", ".join(f"{mark} {name}" for mark, name in MARKS.items())
            raise ValueError(f"a map has no characters but {known}; got {', '.join(map(repr, unknown))}")
        self.names = coordinates_of(self.nrow, self.ncol)
        self.starts, self.apples = self._cells(START), self._cells(APPLE)
        self.river, self.dirt = self._cells(RIVER + DIRT), self._cells(DIRT)
        self.steps = tuple(
            tuple(cell if (to := self.ahead(cell, heading, 1, 0)) < 0 else to for cell in range(len(self.tiles)))
            for heading in range(4)
        )

    def _cells(self, marks: str) -> Cells:
        return tuple(cell for cell, tile in enumerate(self.tiles) if tile in marks)

    def ahead(self, cell: int, heading: int, distance: int, aside: int) -> int:
        """Return the cell so many steps ahead and to the right; -1 if that is a wall or off the map."""
        row, column = divmod(cell, self.ncol)
        (down, right), (side_down, side_right) = _OFFSETS[heading], _OFFSETS[(heading + 1) % 4]
        row += distance * down + aside * side_down
        column += distance * right + aside * side_right
        if not (0 <= row < self.nrow and 0 <= column < self.ncol):
            return -1
        to = row * self.ncol + column
        return -1 if self.tiles[to] == WALL else to


def rows_of(map: object) -> tuple[str, ...] | None:
    """Return the rows of the setting ``map``, ``None`` if it isn't given; a ValueError for what has none."""
    if map is None:
        return None
    if isinstance(map, str) or not isinstance(map, Collection) or not all(isinstance(row, str) for row in map):
        raise ValueError(f'map must be a sequence of rows such as ["P.A", "P.."], got {map!r}')
    return tuple(map)


@lru_cache(maxsize=64)
def board_of(rows: tuple[str, ...]) -> Board:
    """Return the board of a map, worked out once."""
    return Board(rows)


@lru_cache(maxsize=64)
def beams_of(rows: tuple[str, ...], length: int, width: int) -> tuple[tuple[frozenset[int], ...], ...]:
    """Return ``beams[heading][cell]``: the cells that a beam from there reaches.

    A beam has ``width`` lanes, an odd number, with the player's own in the middle. Each lane is ``length`` cells long
    and ends at a wall.
    """
    board = board_of(rows)

    def beam(cell: int, heading: int) -> Iterator[int]:
        for aside in range(-(width // 2), width // 2 + 1):
            lane = (board.ahead(cell, heading, distance, aside) for distance in range(1, length + 1))
            yield from takewhile(lambda to: to >= 0, lane)

    return tuple(tuple(frozenset(beam(cell, heading)) for cell in range(len(board.tiles))) for heading in range(4))
