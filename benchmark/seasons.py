"""Seasons: tournaments with terms of their own. ``--season DIR`` names the folder of one.

An installed package defines what is in the folder and how a season is held: an entry point of the group
``textbench.seasons`` takes the folder and returns a :class:`Season`. ``textbench-research`` has one.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from agents.turn import Policy
from benchmark.entries.entry import Terms
from benchmark.entries.validation import Verdict, check_entry
from benchmark.errors import UsageError
from benchmark.play.agents.choice import PlannedRun, plan_run
from benchmark.play.options import RunOptions
from textgames.plugins import loaded, research_advice


class Season(Protocol):
    """A season as runs and entries need it."""

    @property
    def terms(self) -> Terms: ...

    def plan_run(
        self, options: RunOptions, say: Callable[[str], None], policies: Mapping[str, Policy] | None
    ) -> PlannedRun:
        """Decide who plays what by these terms; raises a UsageError if they refuse an agent or an option."""

    def check(self, entry: Path, beside: Path | None = None) -> Verdict:
        """Check an entry by these terms; the arguments are those of :func:`check_entry`."""


def open_season(folder: str | None) -> Season | None:
    """Open the folder of ``--season``; ``None`` is the open leaderboard."""
    if folder is None:
        return None
    try:
        for opened in loaded("textbench.seasons").values():
            season: Season = opened(Path(folder))
            return season
    except ImportError as error:
        raise UsageError(f"--season {folder}: {error}") from error
    raise UsageError(f"--season {folder}: no installed package has seasons{research_advice('seasons')}")


def plan_played(
    options: RunOptions, say: Callable[[str], None], policies: Mapping[str, Policy] | None = None
) -> PlannedRun:
    """Decide who plays what: :func:`plan_run`, or the terms of the season that the options name."""
    season = open_season(options.season)
    return plan_run(options, say, policies) if season is None else season.plan_run(options, say, policies)


def check_in(season: Season | None, entry: Path, beside: Path | None = None) -> Verdict:
    """Check an entry by the terms of a season, or by those of the open leaderboard if there is none."""
    return check_entry(entry, beside=beside) if season is None else season.check(entry, beside)
