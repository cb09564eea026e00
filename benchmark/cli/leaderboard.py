"""The scores of runs and entries, in the terminal or as a page."""

from benchmark.cli.settings import Leaderboard
from benchmark.errors import UsageError, storing
from benchmark.results import read_results
from benchmark.runs.folder import check_file_place
from benchmark.show.page import write_page


def run(settings: Leaderboard) -> int:
    """Print the scores, or write the page."""
    output, page, file = settings.output, settings.page, settings.html
    if file == "-":
        raise UsageError("--html takes a file, such as page.html, got '-'")
    if file:
        check_file_place(file)
    sources = output.folders(settings.sources)
    results = read_results(*sources, agents=settings.agents, quiet=output.quiet)
    if file:
        document = results.document(title=page.title, max_episodes=page.max_episodes)
        with storing(file):
            size = write_page(document, file)
        count = f"{len(document['episodes'])} of {document['episodes_total']} episodes"
        output.say(f"{file}: {size / 1000:.0f} kB, {count}")
        return 0
    leaderboard = results.leaderboard(title=page.title)
    if settings.json:
        output.document(leaderboard.document)
    elif settings.markdown:
        print(leaderboard.to_markdown(), end="")
    else:
        leaderboard.print(stats=settings.stats)
    return 0
