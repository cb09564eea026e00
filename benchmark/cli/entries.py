"""Commands on leaderboard entries: made of a run, and checked."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Any

from agents.common.files import member, replacing
from agents.common.redaction import Redactor
from benchmark.cli.settings import Submit, Validate
from benchmark.entries.entry import BOARDS, Terms, open_terms, submit
from benchmark.entries.validation import Verdict
from benchmark.errors import UsageError, storing
from benchmark.runs.authorship import digest_of
from benchmark.runs.folder import RunFolder
from benchmark.runs.manifest import read_manifest
from benchmark.score.results import expand_sources
from benchmark.seasons import Season, check_in, open_season


def run_submit(settings: Submit) -> int:
    """Make the season's entry, or one for each leaderboard of whose suite the run has all scenarios."""
    if (season := open_season(settings.season)) is not None:
        return _enter(settings, season, season.terms)
    played = read_manifest(Path(settings.run))["scenarios"].keys()
    boards = [terms for terms in map(open_terms, BOARDS) if played >= {*terms.scenarios}]
    return max(_enter(settings, None, terms) for terms in boards or [open_terms()])


def _enter(settings: Submit, season: Season | None, terms: Terms) -> int:
    """Make the entry and check it; only a good one takes the place of an older one."""
    about = (settings.agent, settings.author, settings.note, Redactor.from_environment())
    with TemporaryDirectory() as folder:
        out, aside = Path(settings.out), Path(folder)
        if terms.suite != "paper":
            with storing(out / terms.suite):
                out, aside = member(out, terms.suite), aside / terms.suite
        made = submit(Path(settings.run), aside, *about, terms)
        with storing(out / made.name):
            entry = member(out, made.name)
        problems = check_in(season, made, out).problems
        kept = bool(problems) and entry.exists()
        if not kept:
            with storing(entry):  # a refused one, too: its author may want to look into it
                entry.mkdir(parents=True, exist_ok=True)
                for file in made.iterdir():
                    with file.open("rb") as source, replacing(entry / file.name, "wb") as target:
                        copyfileobj(source, target)
            print(entry)
    if problems:
        say_problems(entry, "refused", [*problems, *([f"{entry} stays as it was"] if kept else [])])
    return 1 if problems else 0


UNCHECKED = 3
"""The exit code if nothing is wrong with an entry, as far as it could be checked here, and that isn't all."""


def run_validate(settings: Validate) -> int:
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
