"""A Sphinx extension: in the sidebar a game is called by its name, without the ids that stand in its page's heading."""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


def shorten(app: Sphinx, env: BuildEnvironment) -> None:
    """``Nim, `TextNim-v0``` becomes ``Nim``."""
    for page, toc in env.tocs.items():
        entry = toc.next_node(nodes.reference)
        if page.startswith("games/") and entry is not None:
            entry.children = [nodes.Text(entry.astext().partition(", ")[0])]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension; Sphinx calls it."""
    app.connect("env-updated", shorten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
