"""The printed tables, word for word: golden texts of hand-made results, wide and narrow."""

import io
import os
import re
from pathlib import Path

import pytest
from rich.console import Console

from benchmark.cli import main
from benchmark.show.terminal_tables import narrowed, print_sheets, score_sheets
from tests.benchmark.score.test_scores import write_run

GOLDEN = Path(__file__).with_name("golden")


@pytest.fixture
def hand_made(workplace):
    returns = {
        "steady": [1.0] * 20,
        "often": [1.0, 1.0, 0.0, 1.0] * 5,
        "broken": [1.0] * 20,
        "<odd | name>\x1b[31m": [0.0] * 20,
    }
    write_run(workplace / "lake", returns, errors={("broken", 3), ("broken", 4)})
    return write_run(workplace / "ice", {"steady": [1.0, 0.0] * 10, "often": [0.0] * 20}, "frozen-lake-slippery")


COMMANDS = {
    "leaderboard": ("leaderboard", "lake"),
    "leaderboard-markdown": ("leaderboard", "lake", "--markdown"),
    "compare": ("compare", "steady", "often", "--in", "lake"),
    "compare-markdown": ("compare", "steady", "often", "--in", "lake", "--markdown"),
    "list": ("list", "scenarios"),
    "dry-run": ("run", "--agent", "planner", "--agent", "openai:m", "--scenario", "paper", "--dry-run"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_printed_word_for_word(hand_made, capsys, monkeypatch, name):
    """Set TEXTBENCH_UPDATE_GOLDEN=1 to accept what is printed now; then read the difference."""
    monkeypatch.setenv("COLUMNS", "120")
    assert main([*COMMANDS[name]]) == 0
    printed = capsys.readouterr().out
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("TEXTBENCH_UPDATE_GOLDEN"):
        file.write_text(printed)
    assert printed == file.read_text()


def test_a_narrow_terminal_gets_intervals_below_their_values(hand_made):
    from benchmark.score.results import read_results
    from benchmark.score.scores import score_rows

    sheets = score_sheets(score_rows(read_results([hand_made])))
    assert "tokens" in sheets[0].columns
    assert not {"length", "tokens", "cost USD"} & set(narrowed(sheets[0]).columns)
    stream = io.StringIO()
    print_sheets(sheets, Console(file=stream, force_terminal=True, width=80, color_system=None))
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert any(re.fullmatch(r"\s+\[0\.\d+, 0\.\d+\]\s+\[\d+, \d+\]\s+\[100, 100\]\s*", line) for line in lines)
