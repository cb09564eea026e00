"""Check leaderboard entries: every episode is played again from its seed and responses, and must come out equal.

Where the chances of a game are known, the entry's luck is told in standard deviations (z), with the probability that an
honest player has at least so much (p). An entry with too much of it is refused. How much undue luck an episode must
have for that is told, too: the least that is found in 80% of cases. A player that peeks less often isn't found.

examples:
  textbench validate leaderboards/planner
  textbench validate leaderboards            every entry in the folder
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmark.cli.arguments import add_import_option, add_output_options, add_season_option

UNCHECKED = 3
"""The exit code if nothing is wrong with an entry, as far as it could be checked here, and that isn't all."""

if TYPE_CHECKING:
    from benchmark.entries.validation import Verdict
    from benchmark.seasons import Season


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the entries to check."""
    parser.add_argument("entries", nargs="+", metavar="ENTRY", help="entries, or a folder of them")
    add_output_options(parser, "json")
    add_season_option(parser)
    add_import_option(parser)


def run(args: Namespace) -> int:
    """Check every entry, and say what is wrong with each."""
    import json

    from benchmark.score.results import expand_sources
    from benchmark.seasons import open_season

    verdicts = check_entries(expand_sources(args.entries), open_season(args.season), quiet=args.json)
    if args.json:
        print(json.dumps(verdict_rows(verdicts)))
    return exit_code(verdicts)


def check_entries(entries: Sequence[Path], season: "Season | None", *, quiet: bool) -> "dict[str, Verdict]":
    """Check entries of the open leaderboard or of a season, and return ``{folder: verdict}``.

    Args:
        entries: their folders.
        season: whose they are; ``None`` is the open leaderboard.
        quiet: print nothing of a verdict.

    Raises:
        UsageError: the only one of them isn't an entry at all.
    """
    from benchmark.entries.validation import Verdict
    from benchmark.errors import UsageError
    from benchmark.seasons import check_in

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


def _print_verdict(entry: Path, verdict: "Verdict") -> None:
    from benchmark.runs.folder import RunFolder

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
    say_warnings(verdict.warnings)


def verdict_rows(verdicts: "Mapping[str, Verdict]") -> dict[str, dict[str, Any]]:
    """Return the verdicts as ``--json`` prints them."""
    from benchmark.runs.authorship import digest_of

    return {
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
        for entry, verdict in verdicts.items()
    }


def exit_code(verdicts: "Mapping[str, Verdict]") -> int:
    """Return 1 if an entry is refused, :data:`UNCHECKED` if one couldn't be checked whole, else 0."""
    if any(verdict.problems for verdict in verdicts.values()):
        return 1
    return UNCHECKED if any(verdict.unchecked for verdict in verdicts.values()) else 0


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
