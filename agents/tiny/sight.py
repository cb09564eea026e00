"""A player's view of the board of Frozen Lake or Snake, read from the grid that observations show."""

import re
from typing import NamedTuple

from textgames.texts.grids import board_size

DIRECTIONS = {"left": (-1, 0), "down": (0, -1), "right": (1, 0), "up": (0, 1)}
_LAKE_KINDS = {"_": "ice", "O": "hole", "G": "goal"}
_SNAKE_KINDS = {"_": "free", "T": "body", "A": "apple", "B": "banana", "F": "fire"}
_GRID = re.compile(r"^Grid \((?P<key>.*)\):\n", re.MULTILINE)


class Sight(NamedTuple):
    """A player's view of the grid. Cells are ``(x, y)`` with ``(0, 0)`` at the bottom left."""

    width: int  #: cells in a row
    height: int  #: cells in a column
    head: tuple[int, int]  #: the player's cell
    kinds: dict[tuple[int, int], str]  #: ``{cell: kind}`` of every other cell, as statements call it
    edge: str  #: what statements call the outside of the board

    @classmethod
    def of(cls, observation: str) -> "Sight":
        """Read the grid of an observation; a ValueError if it shows none of Frozen Lake or Snake."""
        size, grid = board_size(observation), _GRID.search(observation)
        if size is None or grid is None:
            raise ValueError(f"no grid to check statements against in {observation[:80]!r}; observe with grid=True")
        width, height = size
        lake = "hole" in grid["key"]
        names, own, edge = (_LAKE_KINDS, "P", "edge") if lake else (_SNAKE_KINDS, "1", "wall")
        rows = [line.split()[-width:] for line in observation[grid.end() :].split("\n")[:height]]
        kinds, head = {}, None
        for y, row in enumerate(reversed(rows)):
            for x, mark in enumerate(row):
                if mark == own:
                    head = (x, y)
                else:
                    kinds[x, y] = names.get(mark, "enemy")
        if head is None or len(kinds) != width * height - 1:
            raise ValueError(f"the grid isn't {width} by {height} cells with a player: {observation[grid.start() :]!r}")
        return cls(width, height, head, kinds, edge)

    @property
    def own(self) -> str:
        """What statements call the cell that the player is on."""
        return "player" if self.edge == "edge" else "head"

    def beside(self, *directions: str) -> str:
        """Return the kind of the cell that one step or several lead to."""
        return self.kinds.get(self.cell(*directions), self.edge)

    def cell(self, *directions: str) -> tuple[int, int]:
        """Return the cell that steps lead to, on the board or off it."""
        steps = [DIRECTIONS[direction] for direction in directions]
        return self.head[0] + sum(dx for dx, _ in steps), self.head[1] + sum(dy for _, dy in steps)

    def nearest(self, target: str) -> list[tuple[str, ...]]:
        """Return the directions to each of the nearest things of a kind: ``[("right", "down")]``."""
        x, y = self.head
        offsets = [(cx - x, cy - y) for (cx, cy), kind in self.kinds.items() if kind == target]
        least = min((abs(dx) + abs(dy) for dx, dy in offsets), default=0)
        return [directions_of(dx, dy) for dx, dy in offsets if abs(dx) + abs(dy) == least]


def directions_of(dx: int, dy: int) -> tuple[str, ...]:
    """Return the directions that an offset is made of, horizontal first."""
    across = () if not dx else ("right",) if dx > 0 else ("left",)
    along = () if not dy else ("up",) if dy > 0 else ("down",)
    return (*across, *along)
