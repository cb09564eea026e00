"""Go on with a run that was interrupted, or play its unscored episodes again.

Everything that decides what is played comes from the run's manifest; how fast, how long and for how much can be given
anew, and the number of episodes may grow. A folder of another maker runs no code, asks no server, spends no money,
fetches no weights and sends no secret until you name it, too: a terminal asks once, elsewhere the refusal has the
arguments to add.

examples:
  textbench resume runs/20260131-235959-1a2b3c --max-cost 20
  textbench resume runs/20260131-235959-1a2b3c --episodes 100
"""

from argparse import ArgumentParser, Namespace

from benchmark.cli.arguments import add_import_option, add_output_options
from benchmark.play.options import CLUSTER, OPERATING, add_options, read_options

_NAMES = (*(name for name in OPERATING if name != "out"), "sets", "allow", *CLUSTER)


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the folder and the options that may change."""
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
