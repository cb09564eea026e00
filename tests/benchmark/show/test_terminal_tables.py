"""The printed tables, word for word: golden texts of hand-made results, wide and narrow."""

import io
import os
import re
from html import unescape
from pathlib import Path

import pytest
from rich.console import Console

from agents.common.terminal import printable
from benchmark.cli import main
from benchmark.score.results import read_columns
from benchmark.score.scores import score_rows
from benchmark.show.board import leaderboard_tables, overall_table, score_table
from benchmark.show.document_of import results_document
from benchmark.show.draw import print_tables, to_html, to_markdown, to_text
from benchmark.show.page import render_page
from benchmark.show.page.tables import DASH, MINUS, Sortable
from tests.benchmark.score.test_scores import write_run

GOLDEN = Path(__file__).with_name("golden")
ENTRIES = Path(__file__).parents[3] / "leaderboards"


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
    "leaderboard": ("leaderboard", "lake", "--stats"),
    "leaderboard-short": ("leaderboard", "lake", "ice"),
    "leaderboard-markdown": ("leaderboard", "lake", "--markdown"),
    "compare": ("compare", "steady", "often", "--in", "lake"),
    "compare-markdown": ("compare", "steady", "often", "--in", "lake", "--markdown"),
    "dry-run": ("run", "--agent", "planner", "--agent", "openai:m", "--scenario", "paper", "--dry-run"),
}


def test_all_outputs_show_the_same_figures(hand_made, small_run):
    """Every table of a board, those beside the scores too: each text is in each output, and on the page."""
    documents = [
        results_document(read_columns([one]), max_episodes=0) for one in (hand_made.parent / "lake", small_run)
    ]
    tables = [table for document in documents for table in leaderboard_tables(document)]
    assert {"which skill", "reliability", "overall"} <= {table.title for table in tables}
    for table in tables:
        drawn = [to_text([table]), to_markdown([table]).replace("\\", ""), unescape(to_html([table]))]
        for text in (table.title, *table.titles, *(cell for row in table.texts for cell in row)):
            assert all(printable(text).replace("\\", "") in one.replace("\\", "") for one in drawn), (table.title, text)
        for row, on_page in zip(table.cells, Sortable(table).rows, strict=True):
            for figure, cell in zip(row, on_page, strict=True):
                texts = (figure.text or DASH, figure.interval, figure.note)
                assert (cell.text.replace(MINUS, "-"), cell.interval.replace(MINUS, "-"), cell.note) == texts
    page = render_page(documents[1])
    assert all(f'data-table="{table.key}"' in page for table in leaderboard_tables(documents[1]))


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


def printed(sheets, width):
    stream = io.StringIO()
    print_tables(sheets, Console(file=stream, force_terminal=True, width=width, color_system=None))
    return stream.getvalue()


def test_a_narrow_terminal_gets_intervals_below_their_values(hand_made):
    table = score_table("frozen-lake-slippery", score_rows(read_columns([hand_made])))
    assert "tokens" in table.titles
    assert "tokens" in printed([table], 120)
    assert not {"length", "tokens", "cost USD"} & set(printed([table], 80).split())
    lines = printed([table], 80).splitlines()
    assert max(map(len, lines)) <= 80
    assert any(re.fullmatch(r"\s+\[0\.\d+, 0\.\d+\]\s+\[\d+, \d+\]\s+\[83, 100\]\s*", line) for line in lines)


@pytest.mark.slow
def test_the_leaderboard_fits_80_columns_with_every_figure_in_one_piece(workplace):
    """The committed entries: only names may be folded."""
    document = results_document(read_columns([ENTRIES]), max_episodes=0)
    tables = leaderboard_tables(document)
    lines = printed(tables, 80).splitlines()
    assert max(map(len, lines)) <= 80
    words = [line.split("  ") for line in lines]
    whole = {part.strip() for line in words for part in line}
    for table in tables:
        assert any(line.strip() == table.title for line in lines)
        for row in table.texts:
            for column, figure in zip(table.shown, row, strict=True):
                if not (column.left or column.optional or column.wide_only):
                    assert set(figure.replace(" [", "\n[").split("\n")) <= whole
    assert "A score may exceed 1: the reference is a strong player, not the optimum." in lines
    assert any("normalised scores and ranks are of luck-free returns" in line for line in lines)
    assert "=: can't be told apart from the best agent of this rank" in "\n".join(lines)


def test_an_agent_without_an_overall_score_is_told_what_it_lacks():
    rows = [
        {
            "agent": "a",
            "rank": 1,
            "tied": False,
            "normalized": {"value": 1.0, "low": None, "high": None},
            "above_blind": True,
        },
        {"agent": "b", "rank": None, "tied": False, "normalized": None, "above_blind": None},
    ]
    views = [
        row | {"success": None, "invalid_rate": 0.25, "scenarios": 2 - place, "lacks": ["ice"] * place}
        for place, row in enumerate(rows)
    ]
    table = overall_table({"overall": views, "overall_scenarios": ["lake", "ice"], "scores": []})
    assert table.texts == [["1", "a", "1.000", "25%"], ["-", "b", "-", "25%"]]
    assert "b: not ranked, lacks ice" in table.lines
