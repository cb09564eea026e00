"""A game's ladder: a table of levels, each of them settings and a horizon, with what was measured of their difficulty.

A ladder is a TOML file with the scenario that its levels are named after and a table ``[[levels]]`` for each of them,
the easiest first. The settings are all that a level's game is made with, so all levels name the same ones.
``research/robustness/ladders/measure.py`` writes what is measured and says what it means.
"""

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from textgames.by_game import ByGame, table_of
from textgames.settings import check_whole

if TYPE_CHECKING:
    from textgames.tsmg import TSMG

_FILES: ByGame[Path] = ByGame()


class Level(NamedTuple):
    """One rung."""

    settings: Mapping[str, Any]  # of the game; the others are its defaults
    horizon: int  # rounds after which an episode is truncated
    optimum: float | None = None  # the mean return of best play
    # the share of moves that may go wrong before the best player has lost half of what it is above the best play that
    # doesn't read
    tolerance: float | None = None
    states: int | None = None  # how many states are within reach of a start, on average
    # the fewest rounds that one has to look ahead to keep half of it; ``None`` if that isn't computed
    depth: int | None = None


class Ladder(NamedTuple):
    """The levels of a game, the easiest first."""

    scenario: str  # the name of the scenario that they are levels of
    levels: tuple[Level, ...]  # level 1 and the following ones

    def level(self, number: int) -> Level:
        """Return a level by its number, from 1; a ValueError if there is none."""
        check_whole("level", number, 1, len(self.levels))
        return self.levels[int(number) - 1]


@lru_cache(maxsize=64)
def read_ladder(file: Path) -> Ladder:
    """Return the ladder in a file."""
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    levels = [Level(**{**row, "settings": MappingProxyType(row["settings"])}) for row in data["levels"]]
    return Ladder(data["scenario"], tuple(levels))


def register_ladder(game: "type[TSMG[Any]] | str", file: str | Path) -> None:
    """Give a game its ladder: a file, or the name of a table that ships; a ValueError if there is none."""
    _FILES.register(game, table_of("ladders", file))


def ladder_of(game: "type[TSMG[Any]]") -> Ladder | None:
    """Return the ladder of a game's class or of the nearest base class that has one."""
    file = _FILES.find(game)
    return None if file is None else read_ladder(file)
