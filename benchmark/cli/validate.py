"""Entries, checked."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmark.cli.settings import Validate
from benchmark.entries.validation import Verdict
from benchmark.errors import UsageError
from benchmark.runs.authorship import digest_of
from benchmark.runs.folder import RunFolder
from benchmark.score.results import expand_sources
from benchmark.seasons import Season, check_in, open_season

UNCHECKED = 3
"""The exit code if nothing is wrong with an entry, as far as it could be checked here, and that isn't all."""


def run(settings: Validate) -> int:
    """Check every entry, and say what is wrong with each."""
    season = open_season(settings.season)
    verdicts = check_entries(expand_sources(settings.entries), season, quiet=settings.output.json)
    if settings.output.json:
        print(json.dumps(verdict_rows(verdicts)))
    return exit_code(verdicts)


def check_entries(entries: Sequence[Path], season: Season | None, *, quiet: bool) -> dict[str, Verdict]:
    """Check entries of a season or, with ``None``, of the open leaderboard; return and print ``{folder: verdict}``.

    A UsageError is raised if the only one of them isn't an entry at all.
    """
    found: dict[str, Verdict] = {}
    for entry in entries:
        try:
            verdict = check_in(season, entry)
        except UsageError as error:  # one of many that can't even be read must not hide the others
            if len(entries) == 1:
                raise
            verdict = Verdict([str(error)])
        found[str(entry)] = verdict
        if not quiet:
            _print_verdict(entry, verdict)
    return found


def _print_verdict(entry: Path, verdict: Verdict) -> None:
    if verdict.problems:
        say_problems(entry, "refused", verdict.problems)
        return
    if verdict.unchecked:
        say_problems(entry, "nothing is wrong, but not all of it could be checked", verdict.unchecked)
        return
    luck = [
        f"{name} z = {check['z']:+.1f}, p = {check['p']:.2g}"
        + (f" ({power['detectable']:.2g} an episode would be found in 80% of cases)" if power else "")
        for name, check in verdict.luck.items()
        for power in [verdict.power.get(name)]
    ]
    told = f"; luck: {', '.join(luck)}" if luck else ""
    episodes = len(RunFolder.open(entry).index())
    print(f"{entry}: valid, {episodes} episodes replayed; {verdict.authorship}{told}")
    print(f"  on trust: {'; '.join(verdict.on_trust)}")
    for warning in verdict.warnings:
        print(f"  warning: {warning}", file=sys.stderr)


def verdict_rows(verdicts: Mapping[str, Verdict]) -> dict[str, dict[str, Any]]:
    """Return the verdicts as ``--json`` prints them."""
    shown = ("problems", "luck", "power", "authorship", "warnings", "on_trust", "unchecked")
    return {
        entry: {
            "valid": not verdict.problems,
            "digest": None if verdict.problems else digest_of(Path(entry)),
            **{name: getattr(verdict, name) for name in shown},
        }
        for entry, verdict in verdicts.items()
    }


def exit_code(verdicts: Mapping[str, Verdict]) -> int:
    """Return 1 if an entry is refused, :data:`UNCHECKED` if one couldn't be checked whole, else 0."""
    if any(verdict.problems for verdict in verdicts.values()):
        return 1
    return UNCHECKED if any(verdict.unchecked for verdict in verdicts.values()) else 0


def say_problems(entry: Path, verdict: str, problems: Sequence[str]) -> None:
    """Print on stderr what the verdict on an entry is, and why."""
    print("\n  ".join([f"{entry}: {verdict}", *problems]), file=sys.stderr)
