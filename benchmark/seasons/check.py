"""Checking entries by the terms of the open leaderboard, or by those of a season."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from benchmark.entries.validation import Verdict, check_entry
from benchmark.errors import UsageError
from benchmark.runs.folder import RunFolder
from benchmark.seasons.programs import check_programs
from benchmark.seasons.season import Season


class Withdrawn(NamedTuple):
    """A registered agent whose results were never shown."""

    agent: str
    author: str

    @property
    def told(self) -> str:
        """The agent, with whoever registered it."""
        return f"{self.agent} (by {self.author})" if self.author else self.agent


def withdrawn_from(season: Season, entries: Iterable[Path]) -> list[Withdrawn]:
    """List the registered agents without an entry; before the reveal there can be none."""
    shown = set[str]()
    for entry in entries:
        with suppress(UsageError):  # which is told when the entry is checked
            shown |= {card["name"] for card in RunFolder.open(entry).manifest["agents"]}
    registered = season.agents.values() if season.revealed is not None else ()
    return [Withdrawn(one["card"]["name"], one["author"]) for one in registered if one["card"]["name"] not in shown]


def season_of(folder: str | None) -> Season | None:
    """The season of ``--season DIR``; ``None`` is the open leaderboard."""
    return None if folder is None else Season.open(Path(folder))


def check_in(season: Season | None, entry: Path, beside: Path | None = None) -> Verdict:
    """What is wrong with an entry; in a season also where its agent isn't the registered one.

    Args:
        season: the season; ``None`` is the open leaderboard.
        entry: its folder.
        beside: as for :func:`~benchmark.entries.validation.check_entry`.

    Raises:
        UsageError: it isn't an entry at all, or the season's seeds aren't known yet.
    """
    if season is None:
        return check_entry(entry, beside=beside)
    verdict = check_entry(entry, season.terms, beside)
    try:
        manifest = RunFolder.open(entry).manifest
        own = manifest["settings"].get("agent_options") or {}
        for card in manifest["agents"]:
            season.check_card(card, own.get(card["name"], {}))
    except UsageError as error:
        verdict.problems.append(str(error))
    if not verdict.problems:
        check_programs(season, entry, verdict)
    return verdict
