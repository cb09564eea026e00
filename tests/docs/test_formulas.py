"""Formulas of the site are MathML, made while it is built."""

import tomllib
from io import StringIO
from pathlib import Path

import pytest

ADVICE = "the site's packages aren't installed: pip install -c constraints.txt -e '.[docs]'"
pytest.importorskip("sphinx", reason=ADVICE)
pytest.importorskip("math_core", reason=ADVICE)

from math_core import LatexError  # noqa: E402
from mathml import CONVERTER  # noqa: E402 - needs both
from sphinx.application import Sphinx  # noqa: E402

ROOT = Path(__file__).parents[2]


def built(folder: Path, text: str) -> tuple[str, str]:
    """``(the page, warnings)`` of a site of one page, built with the extension."""
    (folder / "index.rst").write_text(f"A page\n======\n\n{text}\n")
    options = {"extensions": ["mathml"], "html_math_renderer": "mathml", "html_theme": "basic"}
    warnings = StringIO()
    site = folder / "site"
    Sphinx(folder, None, site, site / "trees", "html", options, status=None, warning=warnings).build()
    return (site / "index.html").read_text(), warnings.getvalue()


def test_a_formula_that_cannot_be_translated_is_told(tmp_path):
    page, warnings = built(tmp_path, r"A bad one: :math:`\notknown < 1`.")
    assert r"index.rst:4: WARNING: the formula '\\notknown < 1' can't be made MathML" in warnings
    assert r"\notknown &lt; 1" in page


def test_every_formula_of_a_method_is_translated():
    formulas = tomllib.loads((ROOT / "docs/research/credit/formulas.toml").read_text())
    for methods in formulas.values():
        for about in methods.values():
            assert CONVERTER.convert_with_local_state(about["formula"], displaystyle=True).startswith("<math display")
    with pytest.raises(LatexError):
        CONVERTER.convert_with_local_state(r"\frac{1}", displaystyle=True)
