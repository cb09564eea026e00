"""A Sphinx extension: links of a page to files and folders that aren't pages lead to the repository.

A page links to ``../examples/play.py`` or ``../LICENSE`` as it would in any Markdown viewer. On the site these are no
pages, so the link goes to the file's place in the repository. A link to a file that doesn't exist is a warning, like
one to a page that doesn't.
"""

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform


class RepositoryLinks(SphinxTransform):
    """Before Sphinx looks for pages: what names a file of the repository gets its address there."""

    default_priority = 1

    def apply(self, **kwargs: Any) -> None:
        root = Path(self.env.srcdir).parent
        for link in [
            *self.document.findall(addnodes.download_reference),
            *self.document.findall(addnodes.pending_xref),
        ]:
            path = self.file_of(link)
            if path is None or not path.is_relative_to(root):
                continue  # a page, or nothing: Sphinx warns of that
            kind = "tree" if path.is_dir() else "blob"
            address = f"{self.config.repository_url}/{kind}/main/{path.relative_to(root).as_posix()}"
            link.replace_self(nodes.reference("", "", *link.children, refuri=address, classes=["repository"]))

    def file_of(self, link: nodes.Element) -> Path | None:
        """Return the file or folder that a link of a page names, unless that is a page itself."""
        target = link["reftarget"]
        if link.get("reftype") != "myst" or not target or target in self.env.found_docs:
            return None
        if link.get("refdomain") == "doc":  # outside docs, without its suffix: the text of a page that isn't one here
            found = [Path(target + suffix) for suffix in self.config.source_suffix]
        else:
            found = [Path(self.env.relfn2path(target.partition("#")[0], self.env.docname)[1])]
        return next((path.resolve() for path in found if path.exists()), None)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension; Sphinx calls it."""
    app.add_config_value("repository_url", "", "env", str)
    app.add_transform(RepositoryLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
