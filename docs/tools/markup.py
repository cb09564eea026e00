"""A Sphinx extension: formulas without scripts, links to the repository, and short titles in the sidebar.

Formulas are MathML, which browsers draw by themselves, without a network. math-core translates them while the site is
built, and knows when it can't: that is a warning with the formula's place.

A page links to ``../examples/play.py`` or ``../LICENSE`` as it would in any Markdown viewer. On the site these are no
pages, so the link goes to the file's place in the repository. A link to a file that doesn't exist is a warning, like
one to a page that doesn't.
"""

from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.locale import _
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

CONVERTER = LatexToMathML(fancy_error=False)
logger = logging.getLogger(__name__)


def mathml(node: nodes.math | nodes.math_block) -> str:
    """Return a formula's MathML; what can't be translated is told, and stands on the page as it was written."""
    latex = node.astext()
    try:
        return CONVERTER.convert_with_local_state(latex, displaystyle=isinstance(node, nodes.math_block))
    except LatexError as error:
        logger.warning("the formula %r can't be made MathML: %s", latex, error, location=node)
        return escape(latex)


def visit_inline(translator: HTML5Translator, node: nodes.math) -> None:
    """Show a formula within a sentence."""
    translator.body.append(translator.starttag(node, "span", "", CLASS="math") + mathml(node) + "</span>")
    raise nodes.SkipNode


def visit_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Show a formula of its own, with its number if it has a label."""
    translator.body.append(translator.starttag(node, "div", CLASS="math"))
    if node["number"]:
        translator.body.append(f'<span class="eqno">({get_node_equation_number(translator, node)})')
        translator.add_permalink_ref(node, _("Link to this equation"))
        translator.body.append("</span>")
    translator.body.append(mathml(node) + "</div>\n")
    raise nodes.SkipNode


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


def shorten(app: Sphinx, env: BuildEnvironment) -> None:
    """In the sidebar, make ``Nim`` of ``Nim, `TextNim-v0```."""
    for page, toc in env.tocs.items():
        entry = toc.next_node(nodes.reference)
        if page.startswith("games/") and entry is not None:
            entry.children = [nodes.Text(entry.astext().partition(", ")[0])]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension; Sphinx calls it."""
    app.add_html_math_renderer("mathml", inline_renderers=(visit_inline, None), block_renderers=(visit_block, None))
    app.add_config_value("repository_url", "", "env", str)
    app.add_transform(RepositoryLinks)
    app.connect("env-updated", shorten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
