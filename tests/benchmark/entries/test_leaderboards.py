"""The committed leaderboard: built from its entries, and every entry stands up to being played again."""

from importlib.resources import files
from pathlib import Path

import pytest

from agents.models.embedded import READS
from agents.models.fingerprint import weights_fingerprint
from benchmark.entries.validation import check_entry
from benchmark.runs.folder import RunFolder
from benchmark.runs.plan import PAPER_SCENARIOS
from benchmark.score.results import read_columns
from benchmark.show.document_of import results_document
from benchmark.show.markdown import leaderboard_markdown

LEADERBOARDS = Path(__file__).parents[3] / "leaderboards"
GENERALISTS = sorted(name for name, scenarios in READS.items() if set(PAPER_SCENARIOS) <= set(scenarios))
ENTRIES = sorted(path.parent.name for path in LEADERBOARDS.glob("*/manifest.json"))


def test_the_players_of_the_project_have_entries():
    assert {"random", "greedy", "planner", *GENERALISTS} <= set(ENTRIES)


@pytest.mark.slow
def test_the_page_is_what_the_entries_give(workplace):
    """After a change of entries: textbench leaderboard leaderboards --markdown > leaderboards/README.md."""
    document = results_document(read_columns([LEADERBOARDS]), max_episodes=0)
    assert (LEADERBOARDS / "README.md").read_text() == leaderboard_markdown(document)


def test_entries_come_from_clean_code():
    for name in ENTRIES:
        code = RunFolder.open(LEADERBOARDS / name).manifest["textbench"]
        assert code["commit"], name
        assert code["dirty"] is False, name


@pytest.mark.parametrize("name", GENERALISTS)
def test_entries_are_of_the_models_that_ship(name):
    """Models and entries are made again together: textbench run, textbench submit."""
    settings = RunFolder.open(LEADERBOARDS / name).manifest["agents"][0]["settings"]
    assert settings["model_weights"] == weights_fingerprint(str(files("agents.tiny") / "weights" / name))


@pytest.mark.parametrize(  # the largest take up to half a minute, and are checked in the night
    "name",
    [
        pytest.param(name, marks=getattr(pytest.mark, "nightly" if name.startswith("smollm2") else "slow"))
        for name in ENTRIES
    ],
)
def test_every_entry_is_valid(name):
    assert check_entry(LEADERBOARDS / name).problems == []
