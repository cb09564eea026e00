"""Compute what blind play and the optimum are worth in the settings of published results, and write the page's table.

    python -m research.robustness.lakes docs/research/lakes.json docs/research/lakes.md

Both values are exact on each of the maps that are drawn, and their means are over maps. Blind play draws every move
from one distribution, the best of 35: those of quarters.
"""

import argparse
import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Le
from pydantic import BaseModel, ConfigDict, Field

from agents.common import student
from research.robustness.worst_case.solver import Model, Policy
from textgames.frozen_lake import FROZEN, GOAL, HOLE, START, FrozenLake, FrozenLakeState, Lake, shortest_path
from textgames.solving import Floats, Indices

FILE = Path(__file__).with_name("lakes.toml")
BEGIN, END = "<!-- table: python -m research.robustness.lakes -->", "<!-- end of the table -->"
MAPS, SEED = 2000, 0
BLIND = [np.array(each) / 4 for each in product(range(5), repeat=4) if sum(each) == 4]
POWER, LEVEL = 0.842, 1.960  # normal quantiles of 80% power and of a two-sided test at 5%

Rate = Annotated[float, Ge(0), Le(1)]


class Setting(BaseModel):
    """How maps are drawn and when episodes end; lakes.toml says what each field means."""

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
            blind.append([model.start_values(model.solve(fixed(shares)))[0] for shares in BLIND])
        table = np.array(blind)
        return np.array(best), table[:, table.mean(axis=0).argmax()]


def fixed(shares: Floats) -> Policy:
    """Return the policy that draws each move by the same shares."""

    def chosen(values: Floats, first: Indices, left: int) -> tuple[Floats, Floats]:
        chances = np.tile(shares, len(first))
        return chances, np.add.reduceat(chances * values, first)

    return chosen


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


def table(card: Card, values: Mapping[str, Any]) -> list[str]:
    """Return the lines of the page's tables."""
    lines = [
        "| setting | size | ice | start | moves | goes as meant | blind play | optimum | read in |",
        "|---" * 9 + "|",
    ]
    for name, setting in card.settings.items():
        own, told = values[name], [_range(setting.size), _range(setting.ice), setting.starts, setting.steps]
        ends = (_estimate(own["blind"]), _estimate(own["optimum"]), setting.source)
        lines.append("| " + " | ".join(map(str, [f"`{name}`", *told, f"{setting.success:.2g}", *ends])) + " |")
    lines += [
        "",
        "| result | setting | success | of the way from blind play | episodes to tell it from blind play | source |",
    ]
    lines.append("|---" * 6 + "|")
    for result in card.results:
        blind, best = (values[result.setting][each]["value"] for each in ("blind", "optimum"))
        way, needed = (result.success - blind) / (best - blind), episodes_to_tell(result.success, blind)
        source = result.source + (f" ({result.doubt})" if result.doubt else "")
        rate = f"{result.success:.3g}" + (f" of {result.episodes}" if result.episodes else "")
        lines.append(f"| {result.who} | `{result.setting}` | {rate} | {way:.0%} | {needed} | {source} |")
    return lines


def _range(ends: Any) -> str:
    return " to ".join(map(str, ends)) if isinstance(ends, Sequence) and not isinstance(ends, str) else str(ends)


def _estimate(one: Mapping[str, float]) -> str:
    return f"{one['value']:.3f} [{one['low']:.3f}, {one['high']:.3f}]"


def with_table(page: str, lines: Sequence[str]) -> str:
    """Return a page with other lines between its marks."""
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    return f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n\n{END}{after}"


def main() -> None:
    """Measure all settings, and write the values and the page's table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("values", type=Path, help="the JSON file of the values")
    parser.add_argument("page", type=Path, help="the page with the table")
    parser.add_argument("--maps", type=int, default=MAPS)
    options = parser.parse_args()
    try:
        page = options.page.read_text(encoding="utf-8")
        options.values.touch()
    except (OSError, UnicodeDecodeError) as error:
        parser.error(str(error))
    if options.maps < 2 or BEGIN not in page or END not in page:
        parser.error(f"--maps takes at least 2, got {options.maps}; {options.page} needs the lines {BEGIN} and {END}")
    card = Card.model_validate(tomllib.loads(FILE.read_text(encoding="utf-8")))
    values = measure(card, options.maps)
    options.values.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    options.page.write_text(with_table(page, table(card, values)), encoding="utf-8")


if __name__ == "__main__":
    main()
