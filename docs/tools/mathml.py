"""A Sphinx extension: formulas are MathML, which browsers draw by themselves, without a script and without a network.

math-core translates them while the site is built, and knows when it can't: that is a warning with the formula's place.
"""

from html import escape
from typing import Any

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.application import Sphinx
from sphinx.locale import _
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


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension; Sphinx calls it."""
    app.add_html_math_renderer("mathml", inline_renderers=(visit_inline, None), block_renderers=(visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
