"""The leaderboard page, served to a browser on this machine."""

import sys

from benchmark.cli.settings import Output, View
from benchmark.errors import UsageError
from benchmark.results import read_results
from benchmark.show.page import render_page
from benchmark.show.page.follow import pages_of
from benchmark.show.page.server import serve_page


def run(settings: View) -> int:
    """Serve the page until Ctrl-C."""
    sources, page = Output().folders(settings.sources), settings.page

    def announce(url: str) -> None:
        print(url, flush=True)
        print("Ctrl-C ends it", file=sys.stderr, flush=True)

    def make(version: str) -> tuple[str, bool]:
        document = read_results(*sources, quiet=True).document(title=page.title, max_episodes=page.max_episodes)
        complete = all(source["complete"] for source in document["sources"])
        return render_page(document, follow="" if complete else version), complete

    try:
        browser = not settings.no_browser
        serve_page(pages_of(sources, make), port=settings.port, open_browser=browser, announce=announce)
    except OSError as error:
        raise UsageError(str(error)) from None
    return 0
