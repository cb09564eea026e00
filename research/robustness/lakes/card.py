"""The card's settings and results, and the values of blind play and the optimum in each setting, exactly on a map.

Blind play draws every move from one distribution, the best of 35: those of quarters.
"""

import math
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Le
from pydantic import BaseModel, ConfigDict, Field

from agents.common import student
from research.robustness.worst_case.solver import Model, follow
from textgames.frozen_lake import FROZEN, GOAL, HOLE, START, FrozenLake, FrozenLakeState, Lake, shortest_path
from textgames.solving import Floats

FILE = Path(__file__).with_name("lakes.toml")
MAPS, SEED = 2000, 0
BLIND = [np.array(each) / 4 for each in product(range(5), repeat=4) if sum(each) == 4]
POWER, LEVEL = 0.842, 1.960  # normal quantiles of 80% power and of a two-sided test at 5%

Rate = Annotated[float, Ge(0), Le(1)]


class Setting(BaseModel):
    """A way of drawing maps, and the limit of an episode; lakes.toml says what each field means."""

    model_config = ConfigDict(extra="forbid")

    size: int | tuple[int, int]
    ice: Rate | tuple[Rate, Rate]
    starts: Literal["corner", "anywhere"]
    steps: int | Annotated[str, Field(pattern=r"^\d+ \* size$")]
    success: Rate
    source: str

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

    def values(self, maps: int) -> tuple[Floats, Floats]:
        """Return (maps,) the chance of success of optimal play, and that of the blind play that is best on average."""
        rng, best, blind = np.random.default_rng(SEED), [], []
        game = FrozenLake(is_slippery=self.success < 1, success_rate=self.success)
        for _ in range(maps):
            start, steps = self.draw(rng)
            model = Model.of(game, [start], steps)
            best.append(model.start_values(model.solve())[0])
            fixed = [follow(np.tile(shares, (steps, len(model.space.decisions)))) for shares in BLIND]
            blind.append([model.start_values(model.solve(policy))[0] for policy in fixed])
        table = np.array(blind)
        return np.array(best), table[:, table.mean(axis=0).argmax()]


class Result(BaseModel):
    """A published rate of success."""

    model_config = ConfigDict(extra="forbid")

    setting: str
    who: str
    success: Rate
    source: str
    episodes: Annotated[int, Ge(1)] | None = None
    doubt: str = ""


class Card(BaseModel):
    """The file of settings and results."""

    model_config = ConfigDict(extra="forbid")

    settings: dict[str, Setting]
    results: list[Result]


def episodes_to_tell(one: float, other: float) -> int | None:
    """Return how many episodes each of two rates takes to be told apart, with 80% power at the 5% level."""
    variance = one * (1 - one) + other * (1 - other)
    return None if one == other else max(1, math.ceil(variance * (POWER + LEVEL) ** 2 / (one - other) ** 2))


def measure(card: Card, maps: int = MAPS) -> dict[str, Any]:
    """Return ``{setting: its values}``, means over maps with 95% intervals."""
    found = {}
    for name, setting in card.settings.items():
        best, blind = setting.values(maps)
        found[name] = {"maps": maps, "optimum": student(best).to_json(), "blind": student(blind).to_json()}
    return found
