"""A Sphinx extension: the page of ``leaderboards/`` stands beside the site's own, as ``leaderboards.html``.

It is the page that ``textbench leaderboard leaderboards --html FILE`` writes, with its tables, comparisons and replays.
"""

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from benchmark.cli import main

NAME = "leaderboards.html"


def write_page(app: Sphinx, failure: Exception | None) -> None:
    """Write it when the site is there."""
    if failure is not None or app.builder.format != "html":
        return
    folder, page = Path(app.srcdir).parent / "leaderboards", Path(app.outdir) / NAME
    if main(["leaderboard", str(folder), "--html", str(page)]) != 0:
        raise ExtensionError(f"textbench leaderboard {folder} --html {page} failed")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension; Sphinx calls it."""
    app.connect("build-finished", write_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
