"""Every method of the fine-tuner has a page with its formula, its source, its settings and what it costs."""

import re
from io import StringIO

import pytest
from markup import CONVERTER
from math_core import LatexError
from pages import methods
from pages.methods import formulas, method_page, method_pages
from sphinx.application import Sphinx

from agents.msgrpo.configuration.settings import POINTS

METHODS = [(point, name) for point, registry in POINTS.items() for name in registry.names]


def test_every_registered_method_has_a_formula_in_mathml():
    """A method that was registered gets its formula in docs/research/credit/formulas.toml."""
    assert set(METHODS) <= {(point, name) for point, found in formulas().items() for name in found}
    for about in (one for of_a_point in formulas().values() for one in of_a_point.values()):
        assert about["title"]
        assert CONVERTER.convert_with_local_state(about["formula"], displaystyle=True).startswith("<math display")
    with pytest.raises(LatexError):
        CONVERTER.convert_with_local_state(r"\frac{1}", displaystyle=True)


def test_a_formula_that_cannot_be_translated_is_told(tmp_path):
    (tmp_path / "index.rst").write_text("A page\n======\n\nA bad one: :math:`\\notknown < 1`.\n")
    options = {"extensions": ["markup"], "html_math_renderer": "mathml", "html_theme": "basic"}
    warnings, site = StringIO(), tmp_path / "site"
    Sphinx(tmp_path, None, site, site / "trees", "html", options, status=None, warning=warnings).build()
    assert r"index.rst:4: WARNING: the formula '\\notknown < 1' can't be made MathML" in warnings.getvalue()
    assert r"\notknown &lt; 1" in (site / "index.html").read_text()


def test_the_site_gets_a_page_for_every_method_and_no_other(tmp_path):
    (tmp_path / "credit-gone.md").write_text("of a method that was removed")
    methods.write_pages(tmp_path)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == method_pages()
    assert len(method_pages()) == len(METHODS)


@pytest.mark.parametrize(("point", "name"), METHODS)
def test_a_page_names_its_source_and_all_settings(point, name):
    page = method_page(point, name)
    source = page.split("## Source\n\n")[1].split("\n\n")[0]
    assert re.search(r"arxiv\.org/abs/|github\.com/|Our own|our own|section|, \d{4}|GRPO|public code", source), source
    assert formulas()[point][name]["formula"] in page
    told = page.split("## Settings\n\n")[1].split("## What it needs")[0]
    assert [*re.findall(r"^\| `(\w+)`", told, re.MULTILINE)] == [*POINTS[point].settings_of(name)]
    assert "``" not in re.sub(r"```\w*", "", page), "reStructuredText"
    assert not re.search(r":(class|mod|func|meth|data):", page)
    beside = {f"{point}-{name}.md" for point, name in METHODS}
    for link in re.findall(r"\]\((?!http)([^)#]+)", page):
        assert link in beside or (methods.FOLDER.parent / link.removeprefix("../")).exists(), link
