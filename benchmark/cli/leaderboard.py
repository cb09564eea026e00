"""Show the scores of runs and leaderboard entries: a dozen lines, or with --stats every figure.

examples:
  textbench leaderboard                          the newest run in runs/
  textbench leaderboard runs/a runs/b leaderboards
  textbench leaderboard runs/a --stats           every table: all intervals, luck, lengths, tokens, what ranks go by
  textbench leaderboard runs/a --html page.html
"""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from benchmark.cli.arguments import add_import_option, add_page_options, given_or_newest

if TYPE_CHECKING:
    from benchmark.cli.output import Output
    from benchmark.results import Results


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the runs whose scores are shown, and the form of the output."""
    parser.add_argument("sources", nargs="*", metavar="DIR", help="run folders, entries, or folders of them")
    parser.add_argument("--agent", action="append", metavar="NAME", help="only this agent (several times)")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print one JSON document")
    output.add_argument("--stats", action="store_true", help="print every table with every figure, not a dozen lines")
    output.add_argument("--markdown", action="store_true", help="print Markdown tables")
    output.add_argument("--html", metavar="FILE", help="write the page with tables, comparison and replays")
    add_page_options(parser)
    parser.add_argument("--quiet", action="store_true", help="nothing on stderr but errors")
    add_import_option(parser)


def run(args: Namespace) -> int:
    """Print the scores, or write the page."""
    from benchmark.cli.output import Output
    from benchmark.errors import UsageError
    from benchmark.results import read_results
    from benchmark.runs.folder import check_file_place

    if args.html == "-":
        raise UsageError("--html takes a file, such as page.html, got '-'")
    if args.html:
        check_file_place(args.html)
    output = Output(args.json, args.quiet, args.stats)
    results = read_results(*given_or_newest(args.sources, output), agents=args.agent or (), quiet=args.quiet)
    if args.html:
        return _write_page(args, results, output)
    leaderboard = results.leaderboard(title=args.title)
    if args.json:
        output.document(leaderboard.document)
    elif args.markdown:
        print(leaderboard.to_markdown(), end="")
    else:
        leaderboard.print(stats=args.stats)
    return 0


def _write_page(args: Namespace, results: "Results", output: "Output") -> int:
    from benchmark.errors import storing
    from benchmark.show.page import write_page

    document = results.document(title=args.title, max_episodes=args.max_episodes)
    with storing(args.html):
        size = write_page(document, args.html)
    count = f"{len(document['episodes'])} of {document['episodes_total']} episodes"
    output.say(f"{args.html}: {size / 1000:.0f} kB, {count}")
    return 0
