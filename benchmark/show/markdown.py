"""The committed leaderboard: the Markdown page that is built from the entries, and from nothing else."""

from collections.abc import Mapping
from typing import Any

from benchmark.show.board import leaderboard_tables
from benchmark.show.draw import to_markdown

_INTRODUCTION = """\
Built from the entries in this folder, DIR, by `textbench leaderboard DIR --markdown`; don't edit it by hand.
Each entry holds every response of every episode, and `textbench validate DIR` plays them all again.

To add an agent: `textbench run --agent NAME=SPEC`, then `textbench submit RUN --agent NAME`, build this page again, and
propose the change: a workflow plays every episode of the entry again. How, step by step: docs/benchmark.md, Entries.
"""

LEGEND = """\
Values are means over episodes with 95% intervals. A normalised score is 0 for the best play that doesn't read (the
best fixed distribution over actions) and 1 for the reference on the same episodes: optimal play where the game can be
solved, else the play of a strong player, which can be beaten, as in Snake; each table says which. The overall score is
the mean over games, where a score below 0 counts as 0. For the agent whose play is the reference a score is 1 by
definition and has no interval.
An unreadable response executes a random legal action, unless it is said otherwise below a table.
Where the chances of a game are known, the luck-free return is the mean with luck taken out, and scores and ranks go by
it.
"""


def leaderboard_markdown(document: Mapping[str, Any]) -> str:
    """Return the tables of a document as one Markdown page; the same sources give the same bytes."""
    sources = []
    for source in document["sources"]:  # - `planner`: textbench 0.1.0, commit 0123456789ab
        changed = " with uncommitted changes" if source["dirty"] else ""
        commit = f", commit {source['commit'][:12]}{changed}" if source["commit"] else ""
        season = f", season {source['season']}" if source["season"] else ""
        sources.append(f"- `{source['name']}`: textbench {source['textbench_version']}{commit}{season}\n")
    is_published = all(source["kind"] == "entry" for source in document["sources"])
    tables = to_markdown(leaderboard_tables(document, overall_first=True))
    parts = (f"# {document['title']}\n", _INTRODUCTION if is_published else "", "".join(sources), LEGEND, tables)
    return "\n".join(filter(None, parts))
