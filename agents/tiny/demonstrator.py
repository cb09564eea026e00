"""The noisy demonstrator: plays a game in a mixture of styles and says true things about the board while it does.

Each decision is taken in one of three styles: *sensible* (Frozen Lake: a move that the exact solver takes to reach the
goal soonest; Snake: the first step of a shortest way to food that pays, around snakes and away from enemy heads),
*hasty* (a move that brings the goal or the nearest food that pays nearer, whatever lies there) or *random*.

The reasoning is true in every style: where the target lies, and what is in the cells that come into question. In Snake
it names its own cell and the food's first, since a small model hardly learns to find and to compare both at once. With
a foresight of 2 or more it also says what lies as many moves ahead on the ways towards the target. With ``cells`` it
names every cell before it says what is there, two steps for a model that reads coordinates.
"""

import re
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from textgames.frozen_lake import FrozenLake
from textgames.settings import check_whole
from textgames.snake import Snake
from textgames.solving.value_iteration import ValueIteration
from textgames.texts.grids import board_size
from textgames.tsmg import TSMG

DIRECTIONS = {"left": (-1, 0), "down": (0, -1), "right": (1, 0), "up": (0, 1)}
_LAKE_KINDS = {"_": "ice", "O": "hole", "G": "goal"}
_SNAKE_KINDS = {"_": "free", "T": "body", "A": "apple", "B": "banana", "F": "fire"}
_GRID = re.compile(r"^Grid \((?P<key>.*)\):\n", re.MULTILINE)

# Frozen Lake: the values for 1 to so many steps are added up, so that reaching the goal sooner counts for more
_HORIZON = 24

FORESIGHTS = range(1, 7)
"""How many moves ahead reasoning may report; six moves lead across a lake of 4x4."""


class Sight(NamedTuple):
    """A player's view of the grid. Cells are ``(x, y)`` with ``(0, 0)`` at the bottom left."""

    width: int  #: cells in a row
    height: int  #: cells in a column
    head: tuple[int, int]  #: the player's cell
    kinds: dict[tuple[int, int], str]  #: ``{cell: kind}`` of every other cell, as statements call it
    edge: str  #: the word of statements for the outside of the board

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
        """The word of statements for the cell that the player is on."""
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


class StyleShares(NamedTuple):
    """Shares of the demonstrator's styles; the rest of 1 is random."""

    sensible: float = 0.25
    hasty: float = 0.25

    def checked(self) -> "StyleShares":
        """Return the shares themselves, or raise ValueError for a negative one or more than 1 together."""
        if min(self.sensible, self.hasty) < 0 or self.sensible + self.hasty > 1:
            raise ValueError(f"sensible and hasty are shares of 1 together, got {self.sensible} and {self.hasty}")
        return self


class Demonstration(NamedTuple):
    """A decision of the demonstrator: the action and the two forms of response that name it."""

    action: str
    think: str
    direct: str


def has_demonstrator(game: TSMG[Any]) -> bool:
    """Return whether a game has a demonstrator; others are demonstrated by random legal play."""
    return isinstance(game, FrozenLake | Snake)


class Demonstrator:
    """Demonstrates Frozen Lake or Snake with any settings; a ValueError for another game, shares or foresight."""

    def __init__(self, game: TSMG[Any], style: StyleShares, *, foresight: int = 1, cells: bool = False) -> None:
        check_whole("foresight", foresight, FORESIGHTS[0], FORESIGHTS[-1])
        self.game, self.style, self.foresight, self.cells = game, style.checked(), foresight, cells
        if isinstance(game, FrozenLake):
            self._solver = ValueIteration(game)
            self._best = lru_cache(100_000)(self._best_on_lake)
        elif not isinstance(game, Snake):
            raise ValueError(f"there are demonstrations of Frozen Lake and Snake, not of {type(game).__name__}")

    def __call__(self, state: Any, observation: str, rng: np.random.Generator) -> Demonstration:
        sight = Sight.of(observation)
        target, towards = self._target(sight, rng)
        chance = rng.random()
        if chance < self.style.sensible:
            lake = isinstance(self.game, FrozenLake)
            options = self._best(state) if lake else _towards_food(sight, self._paying, rng)
        elif chance < self.style.sensible + self.style.hasty and towards:
            options = list(towards)
        else:
            options = list(self.game.actions)
        action = options[rng.integers(len(options))]
        reasons = self._reasons(sight, target, towards, action)
        think = f"<think>{reasons}</think><plan>{action}</plan><action>{action}</action>"
        return Demonstration(action, think, f"<action>{action}</action>")

    def reasons(self, observation: str, action: str) -> str:
        """Say true words on a board that lead to an action; a ValueError if the observation shows no grid."""
        sight = Sight.of(observation)
        # of several nearest targets the first, so that a reader has one way of saying it to learn
        target, towards = self._target(sight, np.random.default_rng(0))
        return self._reasons(sight, target, towards, action)

    def _reasons(self, sight: Sight, target: str, towards: tuple[str, ...], action: str) -> str:
        """State where the target is, and what is beside the player in the directions that matter."""
        parts = []
        if "(" in target:  # a cell to compare one's own with
            parts.append(f"{sight.own} {_cell(sight.head)}")
        if towards:
            parts.append(f"{target} is {' and '.join(towards)}")
        considered = towards if action in towards else (*towards, action)
        beside: list[tuple[str, ...]] = [(direction,) for direction in considered]
        for ways in (beside, *_ahead(sight, towards, self.foresight)):
            seen = [
                f"{' '.join(way)}{f' {_cell(sight.cell(*way))}' if self.cells else ''} is {sight.beside(*way)}"
                for way in ways
            ]
            parts.append(", ".join(seen))
        return "; ".join(parts)

    def _target(self, sight: Sight, rng: np.random.Generator) -> tuple[str, tuple[str, ...]]:
        """Return the target and the directions to it; no directions if there is none."""
        goals = [cell for cell, kind in sight.kinds.items() if kind in self._paying]
        if not goals:
            return "", ()
        x, y = sight.head
        distances = [abs(cx - x) + abs(cy - y) for cx, cy in goals]
        nearest = [cell for cell, distance in zip(goals, distances, strict=True) if distance == min(distances)]
        lake = isinstance(self.game, FrozenLake)
        cx, cy = nearest[0 if lake else rng.integers(len(nearest))]
        told = sight.kinds[cx, cy] if lake and not self.cells else f"{sight.kinds[cx, cy]} {_cell((cx, cy))}"
        return told, directions_of(cx - x, cy - y)

    @property
    def _paying(self) -> tuple[str, ...]:
        if isinstance(self.game, FrozenLake):
            return ("goal",)
        snake: Any = self.game
        worth = {"apple": snake.apple_reward, "banana": snake.banana_reward, "fire": snake.fire_reward}
        return tuple(kind for kind, reward in worth.items() if reward > 0)

    def _best_on_lake(self, state: Any) -> list[str]:
        tables = [self._solver.values(state, steps, self.game.players[0]) for steps in range(_HORIZON, 0, -1)]
        total = {action: sum(table[action] for table in tables) for action in self.game.actions}
        return [action for action, value in total.items() if value >= max(total.values()) - 1e-9]


def _cell(cell: tuple[int, int]) -> str:
    return f"({cell[0]}, {cell[1]})"


def _ahead(sight: Sight, towards: tuple[str, ...], foresight: int) -> Iterator[list[tuple[str, ...]]]:
    """Yield the ways of 2, 3, ... moves towards the target that lead over free cells; one way to every cell."""
    ways: list[tuple[str, ...]] = [(direction,) for direction in towards]
    for _ in range(1, foresight):
        open_ways = [way for way in ways if sight.beside(*way) in ("ice", "free")]
        longer = [(*way, direction) for way in open_ways for direction in towards]
        ways = list({sight.cell(*way): way for way in reversed(longer)}.values())[::-1]
        if ways:
            yield ways


def _towards_food(sight: Sight, paying: tuple[str, ...], rng: np.random.Generator) -> list[str]:
    """Return first steps of shortest ways to food that pays; without a way, the neighbours with the most room."""
    avoided = {"wall", "body", "enemy"} | ({"apple", "banana", "fire"} - set(paying))

    def open_cells(cell: tuple[int, int]) -> list[tuple[str, tuple[int, int]]]:
        around = [(name, (cell[0] + dx, cell[1] + dy)) for name, (dx, dy) in DIRECTIONS.items()]
        return [(name, near) for name, near in around if sight.kinds.get(near, "wall") not in avoided]

    enemies = [cell for cell, kind in sight.kinds.items() if kind == "enemy"]
    starts = open_cells(sight.head)
    # a cell that an enemy's head can enter in this round is a coin toss: only if there is no other
    calm = [s for s in starts if all(abs(s[1][0] - x) + abs(s[1][1] - y) > 1 for x, y in enemies)]
    starts = calm or starts
    if not starts:
        return [name for name in DIRECTIONS if sight.beside(name) not in ("wall", "body", "enemy")] or list(DIRECTIONS)
    rng.shuffle(starts)  # equally short ways are equally likely
    queue = deque((name, cell) for name, cell in starts)
    seen = {sight.head, *(cell for _, cell in starts)}
    while queue:
        name, cell = queue.popleft()
        if sight.kinds[cell] in paying:
            return [name]
        for _, near in open_cells(cell):
            if near not in seen:
                seen.add(near)
                queue.append((name, near))
    room = {name: len(open_cells(cell)) for name, cell in starts}
    return [name for name, cells in room.items() if cells == max(room.values())]
