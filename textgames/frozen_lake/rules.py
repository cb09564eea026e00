"""Frozen Lake's rules: maps, states and transition probabilities. No text here.

The dynamics are exactly those of Gymnasium's ``FrozenLake-v1``: cells are numbered row by row from the top left,
actions are left 0, down 1, right 2, up 3, holes and goals are absorbing, and entering a goal pays 1.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from textgames.bases import neighbours, steps_to

ACTIONS = ("left", "down", "right", "up")
START, FROZEN, HOLE, GOAL = "S", "F", "H", "G"

_MAX_DRAWS = 100_000  # maps drawn before we say that the probability is too small for the size


@dataclass(frozen=True, slots=True)
class Lake:
    """One map: an immutable, hashable value."""

    nrow: int  # rows
    ncol: int  # columns
    tiles: str  # one character of ``SFHG`` a cell, row by row from the top left
    # room for what is derived from the map alone (its texts, its value tables), so that it is computed once and dies
    # with the map. Not part of the value: two equal maps are equal whatever they remember.
    memo: dict[Any, Any] = field(default_factory=dict, init=False, compare=False, repr=False)
    moves: tuple[tuple[int, ...], ...] = field(init=False, compare=False, repr=False)  # see `move_table`

    def __post_init__(self) -> None:
        object.__setattr__(self, "moves", move_table(self.nrow, self.ncol))
        if len(self.tiles) != self.nrow * self.ncol:
            raise ValueError(
                f"a {self.nrow} by {self.ncol} map has {self.nrow * self.ncol} tiles, "
                f"got {len(self.tiles)}: {self.tiles!r}"
            )

    @classmethod
    def from_desc(cls, desc: Sequence[str]) -> "Lake":
        """Read a map from its rows, top row first, as Gymnasium's ``desc``; a ValueError says what is wrong."""
        rows = tuple(desc) if isinstance(desc, Collection) else ()
        if isinstance(desc, str) or not rows or not all(isinstance(row, str) for row in rows):
            raise ValueError(f'desc must be a sequence of rows such as ["SF", "FG"], got {desc!r}')
        lengths = {len(row) for row in rows}
        if len(lengths) != 1 or lengths == {0}:
            raise ValueError(f"every row of desc must have the same length of at least 1, got {rows!r}")
        tiles = "".join(rows)
        if strange := set(tiles) - set("SFHG"):
            raise ValueError(
                f"desc may hold S (start), F (frozen), H (hole) and G (goal), got {sorted(strange)!r} in {rows!r}"
            )
        for kind, tile in (("start", START), ("goal", GOAL)):
            if tile not in tiles:
                raise ValueError(f"desc needs a {kind} tile {tile}, got {rows!r}")
        return cls(len(rows), len(rows[0]), tiles)

    # A copied or pickled environment need not take along what can be derived again.
    def __reduce__(self) -> tuple[Any, ...]:
        return Lake, (self.nrow, self.ncol, self.tiles)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Lake":
        return self


class FrozenLakeState(NamedTuple):
    """The state: the map and the player's cell on it."""

    lake: Lake
    position: int
    """The cell, ``row * ncol + column``."""


@lru_cache(maxsize=64)
def move_table(nrow: int, ncol: int) -> tuple[tuple[int, ...], ...]:
    """Return ``table[cell][action] -> cell``; a wall leaves the player in place."""
    beside = neighbours(nrow, ncol, ((0, -1), (1, 0), (0, 1), (-1, 0)))
    return tuple(tuple(cell if to < 0 else to for to in four) for cell, four in enumerate(beside))


def shortest_path(lake: Lake, start: int) -> float:
    """Count the moves of the shortest path from a cell to a goal, around the holes; infinite if there is none."""
    return goal_distances(lake).get(start, float("inf"))


def goal_distances(lake: Lake) -> dict[int, int]:
    """Return ``{cell: moves to the nearest goal around the holes}`` of the cells that have a way; kept with the map."""
    known: dict[int, int] | None = lake.memo.get("goal distances")
    if known is None:
        goals, holes = [{cell for cell, tile in enumerate(lake.tiles) if tile == kind} for kind in (GOAL, HOLE)]
        known = lake.memo["goal distances"] = steps_to(goals, lake.moves, holes)
    return known


@lru_cache(maxsize=64)
def _flood_masks(size: int) -> tuple[int, int]:
    row = (1 << size) - 1
    every_row = ((1 << (size * size)) - 1) // row
    return (row ^ 1) * every_row, (row >> 1) * every_row


def is_solvable(safe: int, size: int) -> bool:
    """Return whether safe cells, the bits of ``safe``, join the first cell to the last.

    A flood fill on whole boards at once: an integer holds a bit per cell, so that a step costs a handful of operations.
    """
    not_first, not_last = _flood_masks(size)
    target = 1 << (size * size - 1)
    reached = 1
    while True:
        sideways = (reached | (reached & not_last) << 1 | (reached & not_first) >> 1) & safe
        grown = (sideways | sideways << size | sideways >> size) & safe
        if grown & target:
            return True
        if grown == reached:
            return False
        reached = grown


_FROZEN_OR_HOLE, _AS_DIGITS = bytes.maketrans(b"\x00\x01", b"HF"), bytes.maketrans(b"\x00\x01", b"01")


def draw_lake(size: int, frozen_probability: float, rng: np.random.Generator) -> Lake:
    """Draw a map with a path from the start (top left) to the goal (bottom right).

    Each tile is frozen with ``frozen_probability``, independently; maps without a path are drawn again, and after
    100,000 of them a ValueError is raised. One map takes ``size * size`` uniform numbers of ``rng``, row by row.
    """
    cells = size * size
    ends = 1 | 1 << (cells - 1)
    for _ in range(_MAX_DRAWS):
        frozen = (rng.random(cells) < frozen_probability).tobytes()
        safe = int(frozen[::-1].translate(_AS_DIGITS), 2) | ends
        if is_solvable(safe, size):
            tiles = frozen.translate(_FROZEN_OR_HOLE).decode("ascii")
            return Lake(size, size, START + tiles[1:-1] + GOAL)
    raise ValueError(
        f"none of {_MAX_DRAWS} maps drawn with frozen_probability={frozen_probability} and size={size} "
        "has a path from start to goal; raise frozen_probability or lower size"
    )


def directions(action: int, is_slippery: bool, success_rate: float) -> list[tuple[float, int]]:
    """Return where a move may lead, ``[(probability, direction), ...]``; slips go one direction to either side."""
    if not is_slippery:
        return [(1.0, action)]
    aside = (1.0 - success_rate) / 2.0
    return [(aside, (action - 1) % 4), (success_rate, action), (aside, (action + 1) % 4)]
