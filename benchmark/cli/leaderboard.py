"""Show the scores of runs and leaderboard entries: counts, 95% intervals, normalised scores, ranks.

examples:
  textbench leaderboard                          the newest run in runs/
  textbench leaderboard runs/a runs/b leaderboards
  textbench leaderboard runs/a --html page.html
"""

from argparse import ArgumentParser, Namespace

from benchmark.cli.sources import add_page_options, given_or_newest


def add_arguments(parser: ArgumentParser) -> None:
    """What to show, and how."""
    parser.add_argument("sources", nargs="*", metavar="DIR", help="run folders, entries, or folders of them")
    parser.add_argument("--agent", action="append", metavar="NAME", help="only this agent (several times)")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print one JSON document")
    output.add_argument("--markdown", action="store_true", help="print Markdown tables")
    output.add_argument("--html", metavar="FILE", help="write the page with tables, comparison and replays")
    add_page_options(parser)
    parser.add_argument("--quiet", action="store_true", help="nothing on stderr but errors")


def run(args: Namespace) -> int:
    """Print the scores, or write the page."""
    from benchmark.play.session import Output, print_scores
    from benchmark.score.references import References
    from benchmark.score.results import read_results
    from benchmark.show.document_of import results_document
    from benchmark.show.markdown import leaderboard_markdown
    from benchmark.show.terminal_tables import leaderboard_sheets, print_sheets, stdout_console

    output = Output(quiet=args.quiet)
    results = read_results(given_or_newest(args.sources, output), args.agent or ())
    most = args.max_episodes if args.html else 0
    document = results_document(
        results, title=args.title, max_episodes=most, references=References(results, output.say)
    )
    if args.html:
        from benchmark.errors import StorageError
        from benchmark.show.page import write_page

        try:
            size = write_page(document, args.html)
        except OSError as error:
            raise StorageError(f"can't write {args.html}: {error.strerror}") from None
        count = f"{len(document['episodes'])} of {document['episodes_total']} episodes"
        output.say(f"{args.html}: {size / 1000:.0f} kB, {count}")
    elif args.json:
        print_scores(document)
    elif args.markdown:
        print(leaderboard_markdown(document), end="")
    else:
        print_sheets(leaderboard_sheets(document), stdout_console())
    return 0
