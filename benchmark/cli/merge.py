"""Merge runs of several machines into one; episodes that several of them played are found by their seeds.

example (two machines play different seeds of the same scenarios):
  textbench run --agent openai:MODEL --episodes 100                    on one
  textbench run --agent openai:MODEL --episodes 100 --seed-offset 100  on the other
  textbench merge runs/one runs/other --out runs/both
"""

from argparse import ArgumentParser, Namespace

from benchmark.cli.arguments import add_import_option


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the runs to merge and the new folder."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run folders")
    parser.add_argument("--out", required=True, metavar="DIR", help="the new run folder")
    add_import_option(parser)


def run(args: Namespace) -> int:
    """Merge the runs, and say what was found."""
    import sys
    from pathlib import Path

    from agents.common.redaction import Redactor
    from benchmark.runs.folder import resume_command
    from benchmark.runs.merge import merge

    out = Path(args.out)
    report = merge([Path(run) for run in args.runs], out, Redactor.from_environment())
    print(out)
    print(
        f"{report.episodes} episodes; {report.duplicates} were in several runs"
        + (f", {report.conflicts} of them played differently (the first run's were kept)" if report.conflicts else ""),
        file=sys.stderr,
    )
    if report.missing:
        print(f"{report.missing} planned episodes are missing; play them: {resume_command(out)}", file=sys.stderr)
    return 0
