"""Resume an interrupted run, or play its unscored episodes again.

The run's manifest decides what is played; limits of time and money can be changed, and the number of episodes can grow.
A folder made by someone else runs no code, asks no server, spends no money, fetches no weights and sends no secret
until you allow it: a terminal asks once, and elsewhere the refusal lists the arguments to add.

examples:
  textbench resume runs/20260131-235959-1a2b3c --max-cost 20
  textbench resume runs/20260131-235959-1a2b3c --episodes 100
"""

from argparse import Namespace

from agents.common.arguments import Parser
from benchmark.cli.arguments import add_import_option, add_output_options
from benchmark.play.options import CLUSTER, OPERATING, add_options, read_options

_NAMES = (*(name for name in OPERATING if name != "out"), "sets", "allow", *CLUSTER)


def add_arguments(parser: Parser) -> None:
    """Declare the folder and the options that may change."""
    parser.daily = {
        "what is resumed": ("DIR", "--episodes", "--repair"),
        "budget and speed": ("--max-cost", "--run-timeout", "--max-concurrency"),
        "trust": ("--allow", "--import", "--base-url"),
        "output": ("--json", "--stats", "--quiet"),
    }
    parser.add_argument("folder", metavar="DIR", help="the run folder")
    add_options(parser, _NAMES)
    parser.add_argument("--base-url", metavar="URL", help="the same server: where its address holds credentials")
    parser.add_argument("--episodes", metavar="N", help="extend the run to so many episodes per scenario and agent")
    parser.add_argument("--repair", action="store_true", help="set damaged lines aside and play their episodes again")
    add_output_options(parser, "json", "stats", "quiet", json="print one JSON document instead of tables")
    add_import_option(parser)


def run(args: Namespace) -> int:
    """Play the episodes that the folder lacks."""
    from pathlib import Path

    from benchmark.cli.output import Output, ask_at_terminal, report
    from benchmark.play.session import reopen_session

    options = read_options(args, names=_NAMES)
    output = Output(args.json, args.quiet, args.stats)
    session = reopen_session(Path(args.folder), options, output.say, repair=args.repair, ask=ask_at_terminal)
    return report(session.play(quiet=output.quiet), output)
