"""Sokoban's rules, and the exact table of every position of a level.

Cells are numbered row by row from the top left, walls around the board included. Rewards are those of gym-sokoban
(Schrader, 2018): each step -0.1, a box onto a target +1, off a target -1, all boxes on targets +10.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ACTIONS = ("up", "down", "left", "right")
WALL, FLOOR, TARGET = "#", "_", "T"

STEP_REWARD, BOX_REWARD, SOLVED_REWARD = -0.1, 1.0, 10.0


class Level(NamedTuple):
    """What doesn't move: the width of the board, and a character a cell (wall, floor or target)."""

    width: int
    tiles: str


class SokobanState(NamedTuple):
    """One position."""

    level: Level  # walls and targets
    player: int  # the player's cell
    boxes: tuple[int, ...]  # the boxes' cells, in ascending order
    moves: int  # how many moves were made
    shortest: int  # moves of the shortest solution from the start. It is there for metrics; rules don't look at it.


def on_targets(level: Level, boxes: tuple[int, ...]) -> int:
    """Return how many boxes stand on targets."""
    return [level.tiles[box] for box in boxes].count(TARGET)


def steps(level: Level) -> tuple[int, int, int, int]:
    """Return what each action adds to the player's cell."""
    return (-level.width, level.width, -1, 1)


def move(level: Level, player: int, boxes: tuple[int, ...], action: int) -> tuple[int, tuple[int, ...]]:
    """Walk or push a box by one cell; a move that is blocked changes nothing."""
    step = steps(level)[action]
    to = player + step
    if level.tiles[to] == WALL:
        return player, boxes
    if to not in boxes:
        return to, boxes
    beyond = to + step
    if level.tiles[beyond] == WALL or beyond in boxes:
        return player, boxes
    return to, tuple(sorted([beyond if box == to else box for box in boxes]))


class LevelTable:
    """Every position of one level: where each action leads, what it pays, and the moves to a solution.

    A position is a number that holds the player's and each box's place among the ``C`` free cells, so there are
    ``C ** (1 + boxes)`` of them; those where two things are on one cell are listed and never reached.

    Attributes:
        next: shape (4, positions), the position that each action leads to.
        rewards: shape (4, positions), what it pays.
        solved: shape (positions,), whether all boxes are on targets.
        distance: shape (positions,), moves to a solution; -1 if there is none, and the position is dead.
    """

    def __init__(self, level: Level, num_boxes: int) -> None:
        tiles = np.array(list(level.tiles))
        self._cells = np.flatnonzero(tiles != WALL)
        self._place = np.full(len(tiles), -1)  # of a cell among the free ones
        self._place[self._cells] = np.arange(len(self._cells))
        self._shape = (len(self._cells),) * (1 + num_boxes)
        self._placed = np.indices(self._shape).reshape(1 + num_boxes, -1)  # (player and boxes, positions)
        on = (tiles[self._cells] == TARGET)[self._placed[1:]].sum(axis=0)
        self._untouched = on == 0
        self.solved = on == num_boxes
        # a free cell always has a cell of the board beside it, as walls stand all around
        beside = [self._place[self._cells + step] for step in steps(level)]
        self.next = np.stack([self._moved(cells) for cells in beside])
        self.rewards = STEP_REWARD + BOX_REWARD * (on[self.next] - on)
        self.rewards += SOLVED_REWARD * self.solved[self.next]
        self.distance = self._distances()
        self._optimal = [np.zeros(len(on))]

    def _moved(self, beside: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the next position of each; ``beside`` is where a step leads from each place, -1 at a wall."""
        player, *boxes = self._placed
        to = beside[player]
        beyond = np.where(to < 0, -1, beside[to])
        pushed = [box == to for box in boxes]
        blocked = np.logical_or.reduce([beyond < 0, *[box == beyond for box in boxes]])
        stuck = (to < 0) | (np.logical_or.reduce(pushed) & blocked)
        places = [np.where(stuck, player, to)]
        places += [np.where(hit & ~stuck, beyond, box) for hit, box in zip(pushed, boxes, strict=True)]
        result: NDArray[np.intp] = np.ravel_multi_index(tuple(places), self._shape)
        return result

    def _distances(self) -> NDArray[np.int32]:
        """Search breadth-first from all solved positions at once: a round for each number of moves."""
        far = np.int32(len(self.solved))
        distance = np.where(self.solved, np.int32(0), far)
        while True:
            nearer = np.minimum(distance, distance[self.next].min(axis=0) + 1)
            if (nearer == distance).all():
                return np.where(distance >= far, np.int32(-1), distance)
            distance = nearer

    def position(self, player: int, boxes: tuple[int, ...]) -> int:
        number = 0
        for cell in (player, *boxes):
            number = number * len(self._cells) + int(self._place[cell])
        return number

    def placing(self, position: int) -> tuple[int, tuple[int, ...]]:
        player, *boxes = self._cells[self._placed[:, position]].tolist()
        return player, tuple(sorted(boxes))

    def starts(self, shortest: int, longest: int) -> NDArray[np.intp]:
        """Return the positions with no box on a target yet and a shortest solution of so many moves."""
        fits = self._untouched & (self.distance >= shortest) & (self.distance <= longest)
        ordered = np.sort(self._placed[:, fits], axis=0)
        apart: NDArray[np.bool_] = (ordered[1:] != ordered[:-1]).all(axis=0)
        return np.flatnonzero(fits)[apart]

    def optimal_values(self, moves: int) -> NDArray[np.float64]:
        """Return ``V_h`` of every position with ``h = moves`` left, by backward induction."""
        while len(self._optimal) <= moves:
            best = (self.rewards + self._optimal[-1][self.next]).max(axis=0)
            self._optimal.append(np.where(self.solved, 0.0, best))
        return self._optimal[moves]


@lru_cache(maxsize=64)
def level_table(level: Level, num_boxes: int) -> LevelTable:
    """Return the table of a level, kept for a while: an episode asks for it at its start and at every step."""
    return LevelTable(level, num_boxes)


def moves_to_solve(state: SokobanState) -> int | None:
    """Return the fewest moves to a solution; ``None`` if there is none any more."""
    table = level_table(state.level, len(state.boxes))
    moves = int(table.distance[table.position(state.player, state.boxes)])
    return None if moves < 0 else moves


def draw_start(
    size: int, num_boxes: int, most_walls: int, shortest: int, longest: int, rng: np.random.Generator
) -> SokobanState:
    """Draw walls and targets, then a length of solution and a start; raise ValueError if none fits in 1000 levels."""
    inner = [row * size + column for row in range(1, size - 1) for column in range(1, size - 1)]
    for _ in range(1000):
        drawn = [inner[place] for place in rng.permutation(len(inner))]
        targets, walls = drawn[:num_boxes], drawn[num_boxes : num_boxes + int(rng.integers(most_walls + 1))]
        free = set(inner) - set(walls)
        tiles = "".join(TARGET if cell in targets else FLOOR if cell in free else WALL for cell in range(size * size))
        level = Level(size, tiles)
        table = level_table(level, num_boxes)
        starts = table.starts(shortest, longest)
        if len(starts):
            # the length first, as short ways would else be drawn far more often than long ones
            lengths = np.unique(table.distance[starts])
            starts = starts[table.distance[starts] == lengths[int(rng.integers(len(lengths)))]]
            position = int(starts[int(rng.integers(len(starts)))])
            return SokobanState(level, *table.placing(position), 0, int(table.distance[position]))
    raise ValueError(
        f"found no start of {shortest} to {longest} moves in 1000 levels of size {size} with {num_boxes} boxes; "
        "accepted: wider bounds, or fewer inner walls"
    )
