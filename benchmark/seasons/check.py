"""Checking entries by the terms of the open leaderboard, or by those of a season."""

from pathlib import Path

from benchmark.entries.validation import Verdict, check_entry
from benchmark.errors import UsageError
from benchmark.runs.folder import RunFolder
from benchmark.seasons.season import Season


def season_of(folder: str | None) -> Season | None:
    """The season of ``--season DIR``; ``None`` is the open leaderboard."""
    return None if folder is None else Season.open(Path(folder))


def check_in(season: Season | None, entry: Path) -> Verdict:
    """What is wrong with an entry; in a season also where its agent isn't the registered one.

    Raises:
        UsageError: it isn't an entry at all, or the season's seeds aren't known yet.
    """
    if season is None:
        return check_entry(entry)
    verdict = check_entry(entry, season.terms)
    try:
        for card in RunFolder.open(entry).manifest["agents"]:
            season.check_card(card)
    except UsageError as error:
        verdict.problems.append(str(error))
    return verdict
