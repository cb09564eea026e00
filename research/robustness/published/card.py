"""The card's settings and results, and the values of blind play and the optimum in each setting."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from agents.common import student
from research.robustness.published.settings import MAPS, Boards, Count, Lakes, Rate

FILE = Path(__file__).with_name("published.toml")
POWER, LEVEL = 0.842, 1.960  # normal quantiles of 80% power and of a two-sided test at 5%


class Result(BaseModel):
    """A published rate of success."""

    model_config = ConfigDict(extra="forbid")

    setting: str
    who: str
    success: Rate
    source: str
    episodes: Count | None = None
    doubt: str = ""


class Card(BaseModel):
    """The file of settings and results."""

    model_config = ConfigDict(extra="forbid")

    lakes: dict[str, Lakes]
    sokoban: dict[str, Boards]
    results: list[Result]

    @property
    def settings(self) -> Mapping[str, Lakes | Boards]:
        return {**self.lakes, **self.sokoban}


def episodes_to_tell(one: float, other: float) -> int | None:
    """Return how many episodes each of two rates takes to be told apart, with 80% power at the 5% level."""
    variance = one * (1 - one) + other * (1 - other)
    return None if one == other else max(1, math.ceil(variance * (POWER + LEVEL) ** 2 / (one - other) ** 2))


def measure(card: Card, maps: int = MAPS, known: Mapping[str, Any] = {}) -> dict[str, Any]:
    """Return ``{setting: its values}``, means over maps with 95% intervals; those that are ``known`` are kept."""
    found = {}
    for name, setting in card.settings.items():
        drawn = {"maps": maps, "setting": setting.model_dump(mode="json", exclude={"prompt", "source"})}
        if (old := known.get(name, {})).items() >= drawn.items():
            found[name] = old
            continue
        best, blind = setting.values(name, maps)
        found[name] = {**drawn, "optimum": student(best).to_json(), "blind": student(blind).to_json()}
    return found
