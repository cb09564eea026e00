"""A Sphinx extension: the pages of ``leaderboards/`` and of the suites in it stand beside the site's own.

``leaderboards.html``, ``leaderboards-planning.html``, ... are the pages that ``textbench leaderboard DIR --html FILE``
writes, with its tables, comparisons and replays.
"""

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from benchmark.cli import main
from benchmark.entries.entry import BOARDS


def write_pages(app: Sphinx, failure: Exception | None) -> None:
    """Write them when the site is there."""
    if failure is not None or app.builder.format != "html":
        return
    for parts in (["leaderboards"], *(["leaderboards", suite] for suite in BOARDS[1:])):
        folder, page = Path(app.srcdir).parent.joinpath(*parts), Path(app.outdir) / f"{'-'.join(parts)}.html"
        if main(["leaderboard", str(folder), "--html", str(page)]) != 0:
            raise ExtensionError(f"textbench leaderboard {folder} --html {page} failed")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension; Sphinx calls it."""
    app.connect("build-finished", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
