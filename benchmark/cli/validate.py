"""Check leaderboard entries: every episode is played again from its seed and responses, and must come out equal.

Where the chances of a game are known, the entry's luck is told in standard deviations (z), with the probability that an
honest player has at least so much (p). An entry with too much of it is refused. How much undue luck an episode must
have for that is told, too: the least that is found in 80% of cases. A player that peeks less often isn't found.

examples:
  textbench validate leaderboards/planner
  textbench validate leaderboards            every entry in the folder
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark.cli.arguments import add_import_option, add_output_options, add_season_option

UNCHECKED = 3
"""The exit code if nothing is wrong with an entry, as far as it could be checked here, and that isn't all."""

if TYPE_CHECKING:
    from benchmark.seasons.check import Withdrawn
    from benchmark.seasons.season import Season


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the entries to check."""
    parser.add_argument("entries", nargs="+", metavar="ENTRY", help="entries, or a folder of them")
    add_output_options(parser, "json")
    add_season_option(parser)
    add_import_option(parser)


def run(args: Namespace) -> int:
    """Check every entry, and say what is wrong with each."""
    from benchmark.score.results import expand_sources
    from benchmark.seasons.check import season_of

    return check_all(expand_sources(args.entries), season_of(args.season), args.json)


def check_all(
    entries: Sequence[Path], season: "Season | None", as_json: bool, withdrawn: "Sequence[Withdrawn] | None" = None
) -> int:
    """Check entries of the open leaderboard or of a season, and tell of each; returns the exit code.

    Args:
        entries: their folders.
        season: whose they are; ``None`` is the open leaderboard.
        as_json: whether one JSON document is printed.
        withdrawn: the registered agents without an entry, if a whole season is checked.
    """
    import json

    from benchmark.entries.validation import Verdict
    from benchmark.errors import UsageError
    from benchmark.runs.authorship import digest_of
    from benchmark.runs.folder import RunFolder
    from benchmark.seasons.check import check_in

    report: dict[str, Verdict] = {}
    for entry in entries:
        try:
            verdict = check_in(season, entry)
        except UsageError as error:  # one of many that can't even be read must not hide the others
            if len(entries) == 1:
                raise
            verdict = Verdict([str(error)])
        report[str(entry)] = verdict
        if as_json:
            continue
        if verdict.problems:
            say_problems(entry, "refused", verdict.problems)
        elif verdict.unchecked:
            say_problems(entry, "nothing is wrong, but not all of it could be checked", verdict.unchecked)
        else:
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
            say_warnings(verdict.warnings)
    if as_json:
        rows = {
            entry: {
                "valid": not verdict.problems,
                "problems": verdict.problems,
                "luck": verdict.luck,
                "power": verdict.power,
                "authorship": verdict.authorship,
                "digest": None if verdict.problems else digest_of(Path(entry)),
                "warnings": verdict.warnings,
                "on_trust": verdict.on_trust,
                "unchecked": verdict.unchecked,
            }
            for entry, verdict in report.items()
        }
        agents = [agent._asdict() for agent in withdrawn or ()]
        print(json.dumps(rows if withdrawn is None else {"entries": rows, "withdrawn": agents}))
    else:
        for agent in withdrawn or ():
            print(f"{agent.told}: withdrawn, it is registered and has no entry")
    if withdrawn or any(verdict.problems for verdict in report.values()):
        return 1
    return UNCHECKED if any(verdict.unchecked for verdict in report.values()) else 0


def say_warnings(warnings: Sequence[str]) -> None:
    """Say on stderr what a reader of a valid entry should look at."""
    import sys

    for warning in warnings:
        print(f"  warning: {warning}", file=sys.stderr)


def say_problems(entry: Path, verdict: str, problems: Sequence[str]) -> None:
    """Say on stderr what the verdict on an entry is, and why."""
    import sys

    print(f"{entry}: {verdict}", file=sys.stderr)
    for problem in problems:
        print(f"  {problem}", file=sys.stderr)
