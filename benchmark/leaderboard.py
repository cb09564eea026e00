"""The committed leaderboard: the Markdown page that is built from the entries, and from nothing else."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmark.results import read_results
from benchmark.tables import Sheet, overall_sheet, rating_sheets, score_sheets, to_markdown
from benchmark.view_data import results_document

README_NAME = "README.md"

_INTRODUCTION = """# {title}

Built from the entries in this folder by `textbench leaderboard leaderboards --markdown`; don't edit it by hand. Each
entry holds every response of every episode, and `textbench validate` replays them:

{sources}

Values are means over episodes with 95% bootstrap intervals. A scenario's normalised score is 0 for random play and 1
for optimal play on the same episodes.

"""


def leaderboard_markdown(document: Mapping[str, Any]) -> str:
    """The tables of a document as one Markdown page; the same entries give the same bytes."""
    sheets: list[Sheet] = []
    if any(row["normalized"] for row in document["overall"]):
        sheets.append(overall_sheet(document["overall"]))
    sheets += score_sheets(document["scores"]) + rating_sheets(document["ratings"])
    lines = [
        f"- `{source['name']}` (textbench {source['textbench_version']}"
        + (
            f", commit {source['commit'][:12]}" + (", uncommitted changes" if source["dirty"] else "")
            if source["commit"]
            else ""
        )
        + ")"
        for source in document["sources"]
    ]
    return _INTRODUCTION.format(title=document["title"], sources="\n".join(lines)) + to_markdown(sheets)


def build_readme(folder: Path) -> str:
    """The page of a folder of entries."""
    return leaderboard_markdown(results_document(read_results([folder]), max_episodes=0))
