"""Settings of published results, and the values of blind play and the optimum there, exactly on each map or board.

Blind play draws every move from one distribution, the best of 35: those of quarters.

Boards of Sokoban are drawn by the generators of other projects and kept as text: a line for each, row by row.
"""

import gzip
import inspect
import math
import random
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.util import module_from_spec, spec_from_file_location
from itertools import count, islice, product
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Le
from pydantic import BaseModel, ConfigDict, Field

from research.robustness.worst_case.solver import Model, follow
from textgames.frozen_lake import FROZEN, GOAL, HOLE, START, FrozenLake, FrozenLakeState, Lake, shortest_path
from textgames.planning import Level, LevelTable, level_table
from textgames.solving import Floats

FOLDER = Path(__file__).with_name("boards")
FLOORS, STATES = "#_T", "#_TBBP"  # gym-sokoban's numbers of what doesn't move, and of what is there, 3 and 4 boxes


def generator(path: Path) -> ModuleType:
    """Run a generator's file, such as gym-sokoban's ``envs/room_utils.py``, without its package, which needs more."""
    spec = spec_from_file_location("generator", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ValueError(f"{path} isn't a file of Python with generate_room(dim, num_steps, num_boxes, ...)")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def draw(module: ModuleType, size: int, boxes: int, arguments: Mapping[str, int]) -> Iterator[str]:
    """Yield a board for each seed from 0 on, but for those that the generator gives up."""
    seeded = "seed" in inspect.signature(module.generate_room).parameters
    for seed in count():
        random.seed(seed)
        np.random.seed(seed)
        given = {**arguments, "seed": seed} if seeded else dict(arguments)
        try:
            # gym-sokoban's SokobanEnv walks so many steps, and so do the projects that build on it
            drawn = module.generate_room(dim=(size, size), num_steps=int(1.7 * 2 * size), num_boxes=boxes, **given)
        except (RuntimeError, RuntimeWarning):
            continue
        yield _text(*drawn[:2])


def _text(fixed: Any, state: Any) -> str:
    """Return a board in the signs of our own game, Sokoban."""
    cells = [(FLOORS[int(f)], STATES[int(s)]) for f, s in zip(fixed.ravel(), state.ravel(), strict=True)]
    return "".join({"B": "X", "P": "p"}.get(s, s) if f == "T" else s for f, s in cells)


def write(name: str, boards: list[str]) -> None:
    """Keep the boards of a setting."""
    text = "".join(f"{board}\n" for board in boards).encode()
    FOLDER.joinpath(f"{name}.txt.gz").write_bytes(gzip.compress(text, mtime=0))


def read(name: str) -> list[str]:
    """Return the boards of a setting."""
    if not FOLDER.joinpath(f"{name}.txt.gz").exists():
        raise ValueError(f"no boards of {name} are kept; draw them: --draw {name} FILE")
    return gzip.decompress(FOLDER.joinpath(f"{name}.txt.gz").read_bytes()).decode().split()


MAPS, SEED = 2000, 0
BLIND = [np.array(each) / 4 for each in product(range(5), repeat=4) if sum(each) == 4]

Rate = Annotated[float, Ge(0), Le(1)]
Count = Annotated[int, Ge(1)]


class _Setting(BaseModel):
    """A setting's common fields; published.toml says what each field means."""

    model_config = ConfigDict(extra="forbid")

    prompt: str
    source: str


class Lakes(_Setting):
    """A way of drawing maps of Frozen Lake, and the limit of an episode."""

    size: Count | tuple[Count, Count]
    ice: Rate | tuple[Rate, Rate]
    starts: Literal["corner", "anywhere"]
    steps: Count | Annotated[str, Field(pattern=r"^\d+ \* size$")]
    success: Rate

    def draw(self, rng: np.random.Generator) -> tuple[FrozenLakeState, int]:
        """Return the start on a map that can be crossed, and the most moves of an episode."""
        size = self.size if isinstance(self.size, int) else int(rng.integers(self.size[0], self.size[1] + 1))
        ice = self.ice if isinstance(self.ice, float) else float(rng.uniform(*self.ice))
        steps = self.steps if isinstance(self.steps, int) else int(self.steps.split()[0]) * size
        while True:
            tiles = np.where(rng.random(size * size) < ice, FROZEN, HOLE)
            start, goal = (0, size**2 - 1) if self.starts == "corner" else rng.integers(size**2, size=2).tolist()
            tiles[start], tiles[goal] = START, GOAL
            rows = ["".join(row) for row in tiles.reshape(size, size)]
            if start != goal and shortest_path(Lake.from_desc(rows), start) < math.inf:
                return FrozenLakeState(Lake.from_desc(rows), start), steps

    def values(self, name: str, maps: int) -> tuple[Floats, Floats]:
        """Return (maps,) the chance of success of optimal play, and that of the blind play that is best on average."""
        rng, best, blind = np.random.default_rng(SEED), [], []
        game = FrozenLake(is_slippery=self.success < 1, success_rate=self.success)
        for _ in range(maps):
            start, steps = self.draw(rng)
            model = Model.of(game, [start], steps)
            best.append(model.start_values(model.solve())[0])
            fixed = [follow(np.tile(shares, (steps, len(model.space.decisions)))) for shares in BLIND]
            blind.append([model.start_values(model.solve(policy))[0] for policy in fixed])
        return np.array(best), _best_on_average(blind)


class Boards(_Setting):
    """A generator of boards of Sokoban, which of them are kept, and the limit of an episode."""

    generator: str
    arguments: dict[str, int] = {}
    size: Count
    boxes: Count
    shortest: tuple[Count, Count] | None = None
    steps: Count

    def draw(self, name: str, path: Path, number: int = MAPS) -> None:
        """Draw boards by a generator's file, and keep those that the setting allows."""
        low, high = self.shortest or (0, math.inf)
        drawn = draw(generator(path), self.size, self.boxes, self.arguments)
        write(name, list(islice((board for board in drawn if low <= Position(board, self.size).moves <= high), number)))

    def values(self, name: str, maps: int) -> tuple[Floats, Floats]:
        """Return (maps,) whether a board can be solved in time, and how often the best blind play solves it."""
        best, blind = [], []
        for board in read(name)[:maps]:
            start = Position(board, self.size)
            best.append(float(start.moves <= self.steps))
            blind.append(start.blind(self.steps))
        return np.array(best), _best_on_average(blind)


class Position:
    """A board's start in the table of all its positions."""

    def __init__(self, board: str, size: int) -> None:
        self._level = Level(size, board.translate(str.maketrans("PBpX", "__TT")))
        self._boxes = tuple(at for at, sign in enumerate(board) if sign in "BX")
        self._player = next(at for at, sign in enumerate(board) if sign in "Pp")

    @cached_property
    def _table(self) -> LevelTable:
        return level_table(self._level, len(self._boxes))

    @property
    def moves(self) -> float:
        """The moves of the shortest solution; infinitely many if there is none."""
        moves = int(self._table.distance[self._table.position(self._player, self._boxes)])
        return moves if moves >= 0 else math.inf

    def blind(self, steps: int) -> Floats:
        """Return (policies,) the chance that each blind policy solves the board."""
        table, shares = self._table, np.array(BLIND).T[:, None]
        solved = np.repeat(table.solved[:, None].astype(np.float64), len(BLIND), axis=1)
        worth = solved
        for _ in range(steps):
            after = sum(share * worth[moved] for share, moved in zip(shares, table.next, strict=True))
            worth = np.maximum(solved, after)
        chances: Floats = worth[table.position(self._player, self._boxes)]
        return chances


def _best_on_average(blind: list[list[float]] | list[Floats]) -> Floats:
    table = np.array(blind)
    best: Floats = table[:, table.mean(axis=0).argmax()]
    return best
