"""Statements about a board in short English, and whether they are true.

The grammar that the demonstrator speaks, and that any model's reasoning can be checked against::

    reasoning  = statement {(", " | "; ") statement}
    statement  = target " is " direction [" and " direction]     "goal is right and down", "nearest apple is left"
               | target cell " is " direction [" and " ...]      "apple (6, 5) is left and up"
               | direction " is " kind                           "right is ice", "down is hole", "up is wall"
               | direction {" " direction} " is " kind           "right down is hole": up to three moves
               | "head " cell                                    "head (7, 3)"

``target is directions`` says where the nearest thing of that kind lies (by moves without obstacles; any one of them if
several are equally near), ``target cell is directions`` that such a thing is in that cell and where that cell lies,
``direction is kind`` what is in the neighbouring cell, ``direction direction is kind`` what is in the cell that these
moves lead to, ``head cell`` where the player's own head is. Boards are read
from the grid that observations show, so no knowledge of a game's state is needed.
"""

import re
from typing import NamedTuple

from textgames.texts.grids import board_size

DIRECTIONS = {"left": (-1, 0), "down": (0, -1), "right": (1, 0), "up": (0, 1)}
_LAKE_KINDS = {"_": "ice", "O": "hole", "G": "goal"}
_SNAKE_KINDS = {"_": "free", "T": "body", "A": "apple", "B": "banana", "F": "fire"}
TARGETS = ("goal", "apple", "banana", "fire", "enemy")

_GRID = re.compile(r"^Grid \((?P<key>.*)\):\n", re.MULTILINE)
_DIRECTED = r" is (left|right|up|down)(?: and (left|right|up|down))?"
_WHERE = re.compile(r"(?:the )?(?:nearest )?(\w+)" + _DIRECTED)
_THERE = re.compile(r"(?:the )?(\w+) \((\d+), (\d+)\)" + _DIRECTED)
_HEAD = re.compile(r"head \((\d+), (\d+)\)")
_NEXT = re.compile(r"((?:left|right|up|down)(?: (?:left|right|up|down)){0,5}) is (\w+)")
_THINK = re.compile(r"<think>(.*?)</think>", re.DOTALL)


class Sight(NamedTuple):
    """What a player sees on the grid. Cells are ``(x, y)`` with ``(0, 0)`` at the bottom left.

    Attributes:
        width: cells in a row.
        height: cells in a column.
        head: where the player is.
        kinds: ``{cell: kind}`` of every other cell, as statements call it.
        edge: what statements call the outside of the board.
    """

    width: int
    height: int
    head: tuple[int, int]
    kinds: dict[tuple[int, int], str]
    edge: str

    @classmethod
    def of(cls, observation: str) -> "Sight":
        """Read the grid of an observation; a ValueError where it shows none of Frozen Lake or Snake."""
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

    def beside(self, *directions: str) -> str:
        """What is in the cell that one step or several lead to."""
        return self.kinds.get(self.cell(*directions), self.edge)

    def cell(self, *directions: str) -> tuple[int, int]:
        """The cell that steps lead to, on the board or off it."""
        steps = [DIRECTIONS[direction] for direction in directions]
        return self.head[0] + sum(dx for dx, _ in steps), self.head[1] + sum(dy for _, dy in steps)

    def nearest(self, target: str) -> list[tuple[str, ...]]:
        """Directions to each of the nearest things of a kind, horizontal first: ``[("right", "down")]``."""
        x, y = self.head
        offsets = [(cx - x, cy - y) for (cx, cy), kind in self.kinds.items() if kind == target]
        least = min((abs(dx) + abs(dy) for dx, dy in offsets), default=0)
        return [directions_of(dx, dy) for dx, dy in offsets if abs(dx) + abs(dy) == least]


def directions_of(dx: int, dy: int) -> tuple[str, ...]:
    """The directions that an offset is made of, horizontal first."""
    across = () if not dx else ("right",) if dx > 0 else ("left",)
    along = () if not dy else ("up",) if dy > 0 else ("down",)
    return (*across, *along)


class Truth(NamedTuple):
    """How much of a reasoning is true.

    Attributes:
        true: statements that hold.
        false: statements that don't.
        unreadable: parts that aren't statements of the grammar.
    """

    true: int
    false: int
    unreadable: int

    @property
    def share(self) -> float:
        """True statements among all parts; ``nan`` where nothing is stated."""
        total = sum(self)
        return self.true / total if total else float("nan")


def check(think_text: str, observation: str) -> Truth:
    """Count the true, false and unreadable parts of a reasoning.

    ``think_text`` is the text inside the think tag, or a whole response that has one. An observation without a grid
    raises ValueError.
    """
    sight = Sight.of(observation)
    inside = _THINK.search(think_text)
    text = inside[1] if inside else "" if "<" in think_text else think_text
    parts = [part.strip().rstrip(".").lower() for part in re.split(r",(?! ?\d+\))|[;\n]", text)]
    verdicts = [_holds(part, sight) for part in parts if part]
    return Truth(verdicts.count(True), verdicts.count(False), verdicts.count(None))


def is_true(think_text: str, observation: str) -> float:
    """The share of a reasoning's statements that are true of the board: in [0, 1], ``nan`` if it states nothing."""
    return check(think_text, observation).share


def _holds(statement: str, sight: Sight) -> bool | None:
    """Whether one statement holds; ``None`` if it isn't one."""
    beside = _NEXT.fullmatch(statement)
    if beside is not None:
        return sight.beside(*beside[1].split()) == beside[2]
    own = _HEAD.fullmatch(statement)
    if own is not None:
        return sight.head == (int(own[1]), int(own[2]))
    there = _THERE.fullmatch(statement)
    if there is not None and there[1] in TARGETS:
        cell = (int(there[2]), int(there[3]))
        offset = directions_of(cell[0] - sight.head[0], cell[1] - sight.head[1])
        return sight.kinds.get(cell) == there[1] and set(offset) == {name for name in there.groups()[3:] if name}
    where = _WHERE.fullmatch(statement)
    if where is None or where[1] not in TARGETS:
        return None
    told = {direction for direction in where.groups()[1:] if direction}
    return any(set(directions) == told for directions in sight.nearest(where[1]))
