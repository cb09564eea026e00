"""Check leaderboard entries: every episode is played again from its seed and responses, and must come out equal.

examples:
  textbench validate leaderboards/planner
  textbench validate leaderboards            every entry in the folder
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the entries to check."""
    parser.add_argument("entries", nargs="+", metavar="ENTRY", help="entries, or a folder of them")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: Namespace) -> int:
    """Check every entry, and say what is wrong with each."""
    import json

    from benchmark.entries.validation import validate
    from benchmark.errors import UsageError
    from benchmark.runs.folder import RunFolder
    from benchmark.score.results import expand_sources

    entries = expand_sources(args.entries)
    report = {}
    for entry in entries:
        try:
            problems = report[str(entry)] = validate(entry)
        except UsageError as error:  # one of many that can't even be read must not hide the others
            if len(entries) == 1:
                raise
            problems = report[str(entry)] = [str(error)]
        if args.json:
            continue
        if problems:
            say_problems(entry, problems)
        else:
            print(f"{entry}: valid, {len(RunFolder.open(entry).index())} episodes replayed")
    if args.json:
        print(json.dumps({entry: {"valid": not problems, "problems": problems} for entry, problems in report.items()}))
    return 1 if any(report.values()) else 0


def say_problems(entry: Path, problems: Sequence[str]) -> None:
    """Why an entry is refused, on stderr."""
    import sys

    from benchmark.show.terminal_tables import printable

    print(f"{entry}: refused", file=sys.stderr)
    for problem in problems:
        print(f"  {printable(problem)}", file=sys.stderr)
