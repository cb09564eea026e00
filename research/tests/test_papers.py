"""The page of papers: every row's verdict names what can be run here, and every paper that research cites has a row."""

import re
from pkgutil import resolve_name

import pytest
from pages import papers

from agents.msgrpo import MSGRPOConfig
from agents.msgrpo.configuration.settings import POINTS
from research.improve.improvers import improvers
from research.tests.test_figures import MADE, ROOT

ROWS = [*papers.rows()]
ARXIV = r"\b\d{4}\.\d{5}\b"
CITING = [*ROOT.glob("docs/research/**/*.md"), *ROOT.glob("research/*/**/*.py"), *ROOT.glob("docs/research/**/*.toml")]
CITING = [file for file in CITING if not file.is_relative_to(ROOT / MADE)]


def test_the_page_is_made_of_the_file():
    ((page, text),) = papers.files()
    assert page.read_text() == text, "run python docs/tools/make_pages.py"
    assert {*papers.data()} == {"parts", "symbols", *papers.data()["parts"]}


@pytest.mark.parametrize(("name", "row"), [row[1:] for row in ROWS], ids=[name for _, name, _ in ROWS])
def test_a_row_says_what_can_be_checked(name, row):
    assert {*row} <= {"id", "does", "method", "here", "test", "figure", "verdict", "lacks"}
    assert re.fullmatch(rf"{ARXIV}|github\.com/[\w-]+/[\w.-]+", row["id"])
    assert row["verdict"] in papers.VERDICTS
    assert ("lacks" in row) == (row["verdict"] != "works")
    if row["verdict"] in ("works", "partial"):
        assert row["here"]
        assert row["test"]
    if "test" in row:
        file, function, case = re.fullmatch(r"([\w/]+\.py)::(\w+)(?:\[([\w-]+)\])?", row["test"]).groups()
        assert re.search(rf"^def {function}\(", (ROOT / file).read_text(), re.MULTILINE), row["test"]
        assert case is None or case.partition("-")[2] in POINTS[case.partition("-")[0]].names
    assert {*re.findall(r"`improve ([\w-]+)", row["here"])} <= {*improvers()}
    if "method" in row and (alone := re.fullmatch(r"`(\w+)`", row["here"])):
        MSGRPOConfig.preset(alone[1])
    for setting, method in re.findall(r"`(\w+) = \"(\w+)\"`", row["here"]):
        MSGRPOConfig.preset(method) if setting == "preset" else MSGRPOConfig(**{setting: method})


def test_every_paper_that_research_cites_has_a_row():
    """What only restates a method ("as arXiv ... states it") is no source of one."""
    cited = {one for file in CITING for one in re.findall(rf"(?<!as )arXiv:? ({ARXIV})", file.read_text())}
    assert len(cited) > 50
    assert cited - {row["id"] for _, _, row in ROWS} == set()


def test_symbols_stand_for_names_that_there_are():
    for _, place in papers.data()["symbols"].values():
        assert resolve_name(place) is not None
