"""The committed leaderboard: built from its entries, and every entry stands up to being played again."""

from importlib.resources import files
from pathlib import Path

import pytest

from agents.models.embedded import READS
from agents.models.local.loading.adapters import weights_fingerprint
from benchmark.cli import main
from benchmark.entries import entry
from benchmark.entries.entry import BOARDS
from benchmark.entries.validation import check_entry
from benchmark.runs.folder import RunFolder
from benchmark.runs.plan import PAPER_SCENARIOS
from benchmark.score.results import read_columns
from benchmark.show.document_of import results_document
from benchmark.show.markdown import leaderboard_markdown

LEADERBOARDS = Path(__file__).parents[3] / "leaderboards"
GENERALISTS = sorted(name for name, scenarios in READS.items() if set(PAPER_SCENARIOS) <= set(scenarios))
ENTRIES = sorted(str(path.parent.relative_to(LEADERBOARDS)) for path in LEADERBOARDS.rglob("manifest.json"))
BY_DAY = ("tiny", "planning/greedy", "exploration/random")
"""One entry a board is played again in every run of CI, the others at night."""


def marked(names, by_day):
    return [pytest.param(name, marks=getattr(pytest.mark, "slow" if name in by_day else "nightly")) for name in names]


def test_the_players_of_the_project_have_entries():
    players = [f"{suite}/{name}" for suite in BOARDS[1:] for name in ("random", "blind", "greedy", "planner")]
    assert {"random", "greedy", "planner", *GENERALISTS, *players} <= set(ENTRIES)
    for name in ENTRIES:
        code = RunFolder.open(LEADERBOARDS / name).manifest["textbench"]
        assert (bool(code["commit"]), code["dirty"]) == (True, False), name


@pytest.mark.parametrize("suite", marked(BOARDS, ("paper",)))
def test_the_page_is_what_the_entries_give(workplace, suite):
    """After a change of entries: textbench leaderboard leaderboards --markdown > leaderboards/README.md."""
    folder = LEADERBOARDS if suite == "paper" else LEADERBOARDS / suite
    document = results_document(read_columns([folder]), max_episodes=0)
    assert (folder / "README.md").read_text() == leaderboard_markdown(document)


def test_a_run_of_several_suites_is_an_entry_on_the_board_of_each(workplace, monkeypatch, capsys):
    """Each holds its own scenarios alone, and in another board's folder it lacks that board's."""
    suites = {"paper": ("frozen-lake",), "planning": ("cliff-walking",), "exploration": ("bandit",)}
    monkeypatch.setattr(entry, "SUITES", suites)
    monkeypatch.setattr(entry, "MIN_EPISODES", 2)
    played = ("--scenario", "frozen-lake", "--scenario", "cliff-walking", "--scenario", "taxi")
    assert main(["run", "--agent", "random", *played, "--episodes", "2", "--out", "run", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["submit", "run", "--out", "boards"]) == 0
    assert capsys.readouterr().out.split() == ["boards/random", "boards/planning/random"]
    for folder, scenario in (("boards/random", "frozen-lake"), ("boards/planning/random", "cliff-walking")):
        assert check_entry(Path(folder)).problems == []
        assert {record.scenario for record in RunFolder.open(Path(folder)).records()} == {scenario}
    Path("boards/planning").rename("boards/exploration")
    assert check_entry(Path("boards/exploration/random")).problems == [
        "manifest.json: scenario 'bandit' is missing",
        "manifest.json: no episodes of 'bandit'",
    ]
    assert main(["run", "--agent", "planning=random", *played, "--episodes", "2", "--out", "named", "--quiet"]) == 0
    assert main(["submit", "named", "--out", "boards"]) == 2
    assert "'planning', which is a suite's" in capsys.readouterr().err


@pytest.mark.parametrize("name", GENERALISTS)
def test_entries_are_of_the_models_that_ship(name):
    """Models and entries are made again together: textbench run, textbench submit."""
    settings = RunFolder.open(LEADERBOARDS / name).manifest["agents"][0]["settings"]
    assert settings["model_weights"] == weights_fingerprint(str(files("agents.tiny") / "weights" / name))


@pytest.mark.parametrize("name", marked(ENTRIES, BY_DAY))
def test_every_entry_is_valid(name):
    assert check_entry(LEADERBOARDS / name).problems == []
