"""Printed tables word for word, wide and narrow, the lines that a run ends in, and boards of many scenarios."""

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
from benchmark.show import board as tables
from benchmark.show.board import leaderboard_tables, overall_table, score_table, suite_table
from benchmark.show.document_of import results_document
from benchmark.show.draw import print_tables, to_html, to_markdown, to_text
from benchmark.show.notes import by_suite, home_suite
from benchmark.show.page import render_page
from benchmark.show.page.tables import DASH, MINUS, Sortable, grouped_sections
from benchmark.show.page.tables import overall_table as overall_on_page
from benchmark.show.summary import MOST_LINES, summary_lines
from tests.benchmark.score.test_scores import board, write_run
from textgames.scenarios import SCENARIOS, SUITES

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


def test_an_agent_without_an_overall_score_is_told_what_it_lacks():
    both = {"tied": False, "success": None, "invalid_rate": 0.25}
    one = {"value": 1.0, "low": None, "high": None}
    whole = {"agent": "a", "rank": 1, "normalized": one, "above_blind": True, "scenarios": 2, "lacks": []}
    lacking = {"agent": "b", "rank": None, "normalized": None, "above_blind": None, "scenarios": 1, "lacks": ["ice"]}
    views = [both | whole, both | lacking]
    table = overall_table({"overall": views, "overall_scenarios": ["lake", "ice"], "scores": []})
    assert table.texts == [["1", "a", "1.000", "25%"], ["-", "b", "-", "25%"]]
    assert "b: not ranked, lacks ice" in table.lines


PAPER = ("frozen-lake", "frozen-lake-slippery", "snake", "snake-poison")


def lines_of(returns, width=120):
    return summary_lines(results_document(board(returns), max_episodes=0), width)


def test_the_sentence_names_what_1_is_where_the_planner_is_no_optimum():
    told = " ".join(lines_of({"snake": {"a": [1.0] * 3, "b": [0.0] * 3}}))
    assert "1 is what the planner gets, which can be beaten." in told


@pytest.fixture
def whole_suites():
    """Two agents on the paper's and the planning scenarios, of which the second lacks one, and on a duel."""
    names = dict.fromkeys((*SUITES["paper"], "frozen-lake-big", "snake-long"))
    played = {name: {"a": [1.0] * 8, "b": [0.0] * 8, "random": [0.0] * 8, "planner": [1.0] * 8} for name in names}
    del played["frozen-lake-big"]["b"]
    return board(played | {"snake-duel": {"a": [2.0, 1.0] * 4, "b": [0.0, 1.0] * 4}})


def test_every_scenario_has_one_home_and_every_suite_its_order():
    groups = by_suite([*SCENARIOS, "my_game:Mine-v0"])
    assert sorted(name for names in groups.values() for name in names) == sorted([*SCENARIOS, "my_game:Mine-v0"])
    assert groups["paper"] == [name for name in SCENARIOS if name in SUITES["paper"]]
    assert groups["others"][-1] == "my_game:Mine-v0"
    assert list(groups)[-1] == "others"
    assert home_suite("frozen-lake") == "paper"  # though planning has it, too


def test_a_large_board_has_a_table_a_suite_with_the_same_figures(whole_suites, workplace, monkeypatch):
    document = results_document(whole_suites, max_episodes=0)
    small = leaderboard_tables(document)
    monkeypatch.setattr(tables, "LARGE", 3)
    large = leaderboard_tables(document)
    assert [sheet.title.partition(":")[0] for sheet in large][:2] == ["paper", "planning"]
    assert len(large) < len(small)
    paper = large[0]
    assert [row[0] for row in paper.texts if row[0]] == list(SUITES["paper"])
    lake = next(sheet for sheet in small if sheet.title.startswith("frozen-lake,"))
    start = next(place for place, row in enumerate(paper.texts) if row[0] == "frozen-lake")
    assert [row[1:] for row in paper.texts[start : start + len(lake.rows)]] == lake.texts
    assert any(note.startswith("frozen-lake: 0 = blind ") for note in paper.lines)


@pytest.mark.slow
def test_the_default_run_ends_in_twelve_lines_that_say_what_the_figures_mean(textbench):
    """Every agent that plays by default is among them, and there are no more at 80 columns."""
    done = textbench("run", "--episodes", 5, "--out", "r")
    assert done.code == 0, done.err
    told = done.err[done.err.index("the episodes: ") :].splitlines()
    narrow = summary_lines(results_document(read_columns(["r"]), max_episodes=0), 80)
    assert max(len(done.out.splitlines()), len(narrow)) + len(told) <= 12
    assert max(map(len, narrow)) <= 80
    optimal = (
        "0 is the best play that doesn't read, 1 is optimal play; in snake, snake-poison it is what the planner gets"
    )
    assert optimal in " ".join(done.out.split())
    for name in ("planner", "greedy", "tiny-msgrpo-frozen-lake", "blind", "random"):
        assert re.search(rf"^{name} ", done.out, re.MULTILINE)
    assert "textbench replay r" in told[0]
    assert "textbench leaderboard r --stats" in told[1]
    for word in ("beta", "luck", "Bonferroni", "SD ratio"):
        assert word not in done.out
    full = textbench("leaderboard", "r", "--stats").out
    assert "Bonferroni" in full
    assert textbench("resume", "r", "--stats").out == full


@pytest.mark.slow
def test_many_agents_warnings_and_a_narrow_terminal_make_no_more_lines():
    """What a server refused and answers without a word are said without being asked, summed over the scenarios."""
    many = {f"agent {number} with a name that goes on and on": [number / 20] * 9 for number in range(20)}
    for scenarios in (PAPER, ("snake",)):
        results = board(dict.fromkeys(scenarios, many))
        for name in scenarios:
            cell = results.cells["agent 3 with a name that goes on and on", name]
            cell.eaten_up = 4
            cell.left_out["temperature"] = 9
        document = results_document(results, max_episodes=0)
        for width in (60, 80, 200):
            lines = summary_lines(document, width)
            assert len(lines) <= MOST_LINES
            assert max(map(len, lines)) <= width
            (more,) = (line for line in lines if line.startswith("and "))
            assert int(more.split()[1]) + sum(line.startswith("agent ") for line in lines[: lines.index(more)]) == 21
            said = " ".join(lines)
            assert "agent 3 with a name that go\u2026: the server refuses temperature, which it wasn't sent;" in said
            assert f"reasoning left no token for {4 * len(scenarios)} res" in said


def test_an_agent_that_doesnt_read_is_marked_and_what_is_missing_is_said(tmp_path):
    rows = lines_of({"frozen-lake": {"reads": [1.0] * 20, "doesn't": [1.0, 0.0, 0.0, 0.0] * 5}})
    assert "*" not in next(row for row in rows if row.startswith("reads"))
    assert " *" in next(row for row in rows if row.startswith("doesn't"))
    assert "*: no better than 0, within chance." in " ".join(rows)
    assert "no better" not in " ".join(lines_of({"frozen-lake": {"reads": [1.0] * 20}}))
    path = write_run(tmp_path / "r", {"a": [1.0] * 20, "down": [1.0] * 20}, errors={("down", 3)})
    lines = summary_lines(results_document(read_columns([path]), max_episodes=0), 120)
    assert "Means of 19 to 20 of 20 planned episodes of frozen-lake" in " ".join(lines)
    (path / "episodes.jsonl").write_text("")
    said = " ".join(summary_lines(results_document(read_columns([path]), max_episodes=0), 120))
    assert "No episode of frozen-lake is scored yet; planned: 20." in said
    assert "No scale" not in said
    both = write_run(tmp_path / "both", {"a": [1.0] * 20, "down": [1.0] * 20}, errors={("a", 3), ("down", 3)})
    assert to_text(leaderboard_tables(results_document(read_columns([both]), max_episodes=0))).count("19 of 20") == 2


@pytest.mark.slow
def test_games_without_a_scale_have_columns_of_returns_and_are_said_to_be_in_no_score(textbench, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    run = ("run", "--agent", "random", "--agent", "planner", "--episodes", 3, "--quiet", "--scenario", "tic-tac-toe")
    done = textbench(*run, "--scenario", "nim", "--scenario", "frozen-lake")
    assert done.code == 0, done.err
    head, *rows = done.out.splitlines()
    assert [one.strip() for one in head.split("  ") if one.endswith("return")] == ["tic-tac-toe return", "nim return"]
    assert "No scale, so returns and in no score: tic-tac-toe, nim." in " ".join(rows)
    alone = textbench(*run).out
    assert alone.splitlines()[0].split()[:3] == ["agent", "mean", "return"]
    assert "doesn't read" not in alone


def test_suites_have_scores_of_whoever_has_all_their_scenarios(whole_suites, workplace, monkeypatch):
    suites = {"paper": SUITES["paper"], "planning": ("frozen-lake", "frozen-lake-big", "snake-long")}
    monkeypatch.setattr("benchmark.score.overall.SUITES", suites)
    document = results_document(whole_suites, max_episodes=0)
    paper, planning = document["suites"]
    assert paper["scenarios"] == list(SUITES["paper"])
    assert paper["normalized"] == {row["agent"]: row["normalized"] for row in document["overall"]}
    assert planning["scenarios"] == ["frozen-lake", "frozen-lake-big", "snake-long"]
    assert planning["normalized"]["b"] is None
    assert planning["normalized"]["a"]["value"] == pytest.approx(1.0)
    (sheet,) = (sheet for sheet in leaderboard_tables(document) if sheet.title == "overall by suite")
    assert sheet.titles == ["agent", "paper", "planning", "invalid"]
    assert next(row for row in sheet.texts if row[0] == "b")[2] == "-"
    assert "planning: over frozen-lake, frozen-lake-big, snake-long" in sheet.lines
    assert [column.title for column in Sortable(suite_table(document)).columns] == [
        *("Agent", "paper", "planning", "Invalid")
    ]
    assert "By suite" in render_page(document)
    # an overall score over many scenarios has no column for each
    assert len(overall_on_page(document).columns) == 6 + len(SUITES["paper"])
    document["overall_scenarios"] = list(map(str, range(20)))
    assert len(overall_on_page(document).columns) == 6
    (sheet,) = (sheet for sheet in leaderboard_tables(document) if sheet.title == "overall")
    assert ", 10, 11, 8 more, whose scores count as 0 below 0" in sheet.lines[0]
    # the paper's scenarios alone: their suite says no more than the overall score
    alone = results_document(board({name: {"a": [1.0] * 4} for name in SUITES["paper"]}), max_episodes=0)
    assert suite_table(alone) is None
    assert [group.suite for group in grouped_sections(alone)] == [""]


def test_metrics_stand_in_tables_of_their_own(whole_suites, workplace, monkeypatch):
    cell = whole_suites.cells["a", "snake-duel"]
    for name in ("regret", *(f"figure {number}" for number in range(6))):
        cell.metrics[name] = [float(k) for k in range(cell.episodes)]
    document = results_document(whole_suites, max_episodes=0)
    first, second = (one for one in leaderboard_tables(document) if one.title == "snake-duel, more figures")
    assert (len(first.titles), len(second.titles)) == (1 + 5, 1 + 2)  # no table is wider than that
    assert first.titles[:2] == ["agent", "regret"]
    assert first.texts[0][1].startswith("3.500 [")
    page = render_page(document)
    assert all(f'data-table="snake-duel-{part}"' in page for part in ("metrics", "seats"))
    monkeypatch.setattr(tables, "LARGE", 0)
    (text,) = (sheet for sheet in leaderboard_tables(document) if sheet.title == "strategy: more figures")
    assert text.texts[0][2].startswith("regret 3.500, figure 0 3.500")
