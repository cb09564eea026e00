"""What installed packages add to runs, entries and boards: seasons, and tables beside the scores."""

import json
from pathlib import Path

import pytest

from tests.agents.helpers import install
from tests.benchmark.helpers import refused

MODULE = """
from dataclasses import replace

from benchmark.entries import Terms, Verdict
from benchmark.play import plan_run
from benchmark.show import Table, Column, Figure


class Short:
    def __init__(self, path):
        self.path = path
        self.terms = Terms(("frozen-lake",), 2, mark={"name": path.name, "sha256": "0" * 64})

    def plan_run(self, options, say, policies):
        decided = {"scenarios": self.terms.scenarios, "episodes": 2}
        return plan_run(replace(options, **decided), say, policies)._replace(season=self.terms.mark)

    def check(self, entry, beside=None):
        return Verdict([f"no entry of {self.path.name} is good enough"])


NAME = Column("agent", "agent", lambda row: Figure(row["agent"]))
COLUMNS = (NAME, Column("n", "seen", lambda row: Figure(row["n"])))
COUNTS = Table(
    "counts",
    "tally",
    COLUMNS,
    ("a note",),
    lambda scored: [{"agent": row["agent"], "n": str(row["episodes"])} for row in scored.scores],
    "They were counted.",
    lambda rows: {"seen": Figure(rows[0]["n"])},
)
"""


@pytest.fixture
def alone(tmp_path_factory, monkeypatch):
    """A folder of packages, beside which ``textbench-research`` adds nothing."""
    folder = tmp_path_factory.mktemp("packages")
    install(folder, "", "textbench_research")  # in front of the one that is called alike
    monkeypatch.syspath_prepend(folder)
    return folder


def test_without_a_package_of_seasons_the_option_says_what_to_install(alone, textbench):
    for command in (("run",), ("submit", "small"), ("validate", "small")):
        done = textbench(*command, "--season", "autumn")
        refused(done, "autumn: no installed package has seasons; seasons come with textbench-research: pip install")


def test_a_package_adds_a_season_and_a_table(alone, textbench):
    (alone / "short_seasons.py").write_text(MODULE)
    points = "[textbench.seasons]\nshort = short_seasons:Short\n[textbench.tables]\ncounts = short_seasons:COUNTS\n"
    install(alone, points, "short_seasons")
    ran = textbench("run", "--season", "autumn", "--agent", "random", "--out", "r", "--quiet")
    assert ran.code == 0, ran.err
    assert "They were counted." in ran.out
    assert json.loads(Path("r/manifest.json").read_text())["season"]["name"] == "autumn"
    board = textbench("leaderboard", "r", "--json")
    assert json.loads(board.out)["counts"] == [{"agent": "random", "n": "2"}]
    for form in ("--stats", "--markdown"):
        assert "tally" in textbench("leaderboard", "r", form).out
    assert textbench("leaderboard", "r", "--html", "page.html").code == 0
    assert 'data-table="counts"' in Path("page.html").read_text()
    entry = textbench("submit", "r", "--season", "autumn", "--out", "entries")
    assert entry.code == 1
    assert "no entry of autumn is good enough" in entry.err
    assert textbench("validate", "entries/random", "--season", "autumn").code == 1


def test_a_package_that_cant_be_imported_is_named(alone, textbench):
    points = "[textbench.seasons]\nshort = nowhere:Short\n[textbench.tables]\ncounts = nowhere:COUNTS\n"
    install(alone, points, "broken_seasons")
    done = textbench("run", "--season", "autumn")
    refused(done, "broken-seasons adds 'short' (nowhere:Short), which can't be imported: No module named 'nowhere'")
    done = textbench("run", "--agent", "random", "--scenario", "frozen-lake", "--episodes", "1")
    told = "the table 'counts' of broken-seasons (nowhere:COUNTS) can't be imported: No module named 'nowhere'"
    assert (done.code, done.err.count(told)) == (0, 1)
