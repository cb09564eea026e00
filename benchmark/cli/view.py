"""Show the leaderboard page in a browser: tables, comparisons, replays. Served to this machine only.

The page follows a run that is being played: tables and episodes come as they are written, without loading it again.

examples:
  textbench view                 the newest run
  textbench view runs/a leaderboards --port 8080
"""

from argparse import ArgumentParser, Namespace

from benchmark.cli.arguments import add_import_option, add_number, add_page_options, given_or_newest


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the runs that the page shows, and its address."""
    parser.add_argument("sources", nargs="*", metavar="DIR", help="runs or entries (default: the newest run)")
    add_number(parser, "--port", 0, "port on 127.0.0.1; 0 takes a free one", most=65_535)
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    add_page_options(parser)
    add_import_option(parser)


def run(args: Namespace) -> int:
    """Serve the page until Ctrl-C."""
    import sys

    from benchmark.cli.output import Output
    from benchmark.errors import UsageError
    from benchmark.results import read_results
    from benchmark.show.page import render_page
    from benchmark.show.page.follow import pages_of
    from benchmark.show.page.server import serve_page

    def announce(url: str) -> None:
        print(url, flush=True)
        print("Ctrl-C ends it", file=sys.stderr, flush=True)

    sources = given_or_newest(args.sources, Output())

    def make(version: str) -> tuple[str, bool]:
        results = read_results(*sources, quiet=True)
        document = results.document(title=args.title, max_episodes=args.max_episodes)
        complete = all(source["complete"] for source in document["sources"])
        return render_page(document, follow="" if complete else version), complete

    try:
        serve_page(pages_of(sources, make), port=args.port, open_browser=not args.no_browser, announce=announce)
    except OSError as error:
        raise UsageError(str(error)) from None
    return 0
