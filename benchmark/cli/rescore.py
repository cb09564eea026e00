"""Stored answers, read again by another reading."""

from benchmark.cli.settings import Rescore
from benchmark.results import read_results
from benchmark.score.readings import reading_rows
from benchmark.show.board import rescored_table
from benchmark.show.draw import print_tables


def run(settings: Rescore) -> int:
    """Print what the reading changes."""
    output = settings.output
    results = read_results(*output.folders(settings.runs), agents=settings.agents, quiet=output.quiet)
    rows = reading_rows(results.columns, results.agents, settings.reading)
    if output.json:
        output.document({"reading": settings.reading, "readings": rows})
    elif rows:
        print_tables([rescored_table(rows)])
    else:
        print(f"every answer could be read when it was played; the {settings.reading} reading changes nothing")
    return 0
