"""Every method of the fine-tuner has a page with its formula, its source, its settings and what it costs."""

import re

import pytest
from pages import methods
from pages.methods import formulas, method_page, method_pages

from agents.msgrpo.configuration.settings import POINTS

METHODS = [(point, name) for point, registry in POINTS.items() for name in registry.names]


def test_every_registered_method_has_a_formula():
    """A method that was registered gets its formula in docs/research/credit/formulas.toml."""
    assert set(METHODS) <= {(point, name) for point, found in formulas().items() for name in found}
    for point, name in METHODS:
        about = formulas()[point][name]
        assert about["title"], (point, name)
        assert about["formula"].count("{") == about["formula"].count("}"), (point, name)
        assert about["formula"].count(r"\begin") == about["formula"].count(r"\end"), (point, name)
        assert len(re.findall(r"\\(?:big|Big|left|right)(?![a-z])", about["formula"])) % 2 == 0, (point, name)


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
