"""The card's settings and results, and the values of blind play and the optimum in each setting."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict
from scipy.stats import binom

from agents.common import student
from research.robustness.published.settings import MAPS, Boards, Count, Lakes, Rate

FILE = Path(__file__).with_name("published.toml")
POWER, LEVEL, MOST = 0.8, 0.05, 100_000


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


def episodes_to_tell(rate: float, known: float) -> int | None:
    """Return the fewest episodes whose exact two-sided binomial test tells a rate from a known one.

    The test is at the 5% level, and has 80% power. More than :data:`MOST` episodes are ``None``.
    """
    for most in (1000, MOST):
        number = np.arange(1, most + 1)
        few, many = binom.ppf(LEVEL / 2, number, known) - 1, binom.isf(LEVEL / 2, number, known)
        told = binom.cdf(few, number, rate) + binom.sf(many, number, rate) >= POWER
        if told.any():
            return int(number[told.argmax()])
    return None


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
