"""The lines that a run ends in: at most a dozen, for somebody who knows none of the words."""

import re

import pytest

from benchmark.score.results import read_columns
from benchmark.show.document_of import results_document
from benchmark.show.summary import MOST_LINES, summary_lines
from tests.benchmark.score.test_scores import board, write_run

PAPER = ("frozen-lake", "frozen-lake-slippery", "snake", "snake-poison")


def lines_of(returns, width=120):
    return summary_lines(results_document(board(returns), max_episodes=0), width)


@pytest.mark.slow
def test_the_default_run_ends_in_twelve_lines_that_say_what_the_figures_mean(textbench):
    """Every agent that plays by default is among them, and there are no more at 80 columns."""
    done = textbench("run", "--episodes", 5, "--out", "r")
    assert done.code == 0, done.err
    told = done.err[done.err.index("the episodes: ") :].splitlines()
    lines = done.out.splitlines() + told
    assert len(lines) <= 12
    narrow = summary_lines(results_document(read_columns(["r"]), max_episodes=0), 80)
    assert len(narrow) + len(told) <= 12
    assert max(map(len, narrow)) <= 80
    wider = summary_lines(results_document(read_columns(["r"]), max_episodes=0), 120)
    assert [line.split()[0] for line in wider[:8]] == [line.split()[0] for line in lines[:8]]
    text = " ".join(done.out.split())
    assert (
        "0 is the best play that doesn't read, 1 is optimal play; in snake, snake-poison it is what the planner gets"
        in text
    )
    for name in ("planner", "greedy", "tiny-msgrpo-frozen-lake", "blind", "random"):
        assert re.search(rf"^{name} ", done.out, re.MULTILINE)
    assert "textbench replay r" in told[0]
    assert "textbench leaderboard r --stats" in told[1]
    for word in ("beta", "luck", "Bonferroni", "SD ratio"):
        assert word not in done.out
    full = textbench("leaderboard", "r", "--stats").out
    assert "Bonferroni" in full
    assert textbench("resume", "r", "--stats").out == full
    # from 20 episodes on there is an account of luck
    assert "luck z" in textbench("run", "--agent", "random", "--scenario", "frozen-lake-slippery", "--stats").out


@pytest.mark.slow
def test_many_agents_and_a_narrow_terminal_make_no_more_lines():
    many = {f"agent {number} with a name that goes on and on": [number / 20] * 9 for number in range(20)}
    for scenarios in (PAPER, ("snake",)):
        document = results_document(board(dict.fromkeys(scenarios, many)), max_episodes=0)
        for width in (60, 80, 200):
            lines = summary_lines(document, width)
            assert len(lines) <= MOST_LINES
            assert max(map(len, lines)) <= width
            (more,) = (line for line in lines if line.startswith("and "))
            assert int(more.split()[1]) + sum(line.startswith("agent ") for line in lines) == 20 + 1  # the titles


def test_the_sentence_names_what_1_is_in_every_scenario():
    played = {"a": [1.0] * 3, "b": [0.0] * 3}
    optimal = "0 is the best play that doesn't read, 1 is optimal play."
    beaten = "1 is what the planner gets, which can be beaten."
    mixed = "1 is optimal play; in snake it is what the planner gets, which can be beaten."
    for scenarios, sentence in ((("frozen-lake",), optimal), (("snake",), beaten), (("frozen-lake", "snake"), mixed)):
        assert sentence in " ".join(lines_of(dict.fromkeys(scenarios, played)))


def test_an_agent_that_doesnt_read_is_marked():
    rows = lines_of({"frozen-lake": {"reads": [1.0] * 20, "doesn't": [1.0, 0.0, 0.0, 0.0] * 5}})
    assert "*" not in next(row for row in rows if row.startswith("reads"))
    assert " *" in next(row for row in rows if row.startswith("doesn't"))
    assert "*: no better than 0, within chance." in " ".join(rows)
    assert "no better" not in " ".join(lines_of({"frozen-lake": {"reads": [1.0] * 20}}))


def test_a_game_without_a_scale_shows_returns_and_no_sentence_on_scores(textbench):
    done = textbench(
        "run", "--agent", "random", "--agent", "greedy", "--scenario", "snake-duel", "--episodes", 3, "--quiet"
    )
    assert done.code == 0, done.err
    head, *rows, note = done.out.splitlines()
    assert head.split() == ["agent", "mean", "return", "success", "invalid"]  # who wins all games has no finite rating
    assert {row.split()[0] for row in rows} == {"random", "greedy"}
    assert "doesn't read" not in note


@pytest.mark.slow
def test_games_without_a_scale_beside_others_have_columns_of_returns_and_are_said_to_be_in_no_score(
    textbench, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "200")
    agents, games = ("--agent", "random", "--agent", "planner"), ("tic-tac-toe", "nim", "frozen-lake")
    played = [part for game in games for part in ("--scenario", game)]
    done = textbench("run", *agents, *played, "--episodes", 3, "--quiet")
    assert done.code == 0, done.err
    head, *rows = done.out.splitlines()
    assert [one.strip() for one in head.split("  ") if one.endswith("return")] == ["tic-tac-toe return", "nim return"]
    assert "No scale, so returns and in no score: tic-tac-toe, nim." in " ".join(rows)
    done = textbench("run", *agents, *played[:4], "--episodes", 3, "--quiet")
    assert "tic-tac-toe return" in done.out
    assert "in no score: tic-tac-toe, nim." in " ".join(done.out.split())


def test_what_isnt_played_yet_isnt_said_to_have_no_scale(tmp_path):
    path = write_run(tmp_path / "r", {"a": [1.0] * 20, "down": [1.0] * 20})
    (path / "episodes.jsonl").write_text("")
    said = " ".join(summary_lines(results_document(read_columns([path]), max_episodes=0), 120))
    assert "No episode of frozen-lake is scored yet; planned: 20." in said
    assert "No scale" not in said


def test_a_run_with_unscored_episodes_still_ends_in_few_lines(tmp_path):
    path = write_run(tmp_path / "r", {"a": [1.0] * 20, "down": [1.0] * 20}, errors={("down", 3)})
    lines = summary_lines(results_document(read_columns([path]), max_episodes=0), 120)
    assert len(lines) <= MOST_LINES
    assert "Means of 19 to 20 of 20 planned episodes of frozen-lake" in " ".join(lines)


@pytest.mark.slow
def test_who_was_asked_in_another_way_than_it_seems_is_said_without_being_asked():
    """Parameters that a server refused, and answers without a word: summed over the scenarios, within a dozen lines."""
    results = board({name: {f"model {number}": [1.0] * 9 for number in range(20)} for name in PAPER})
    for name in PAPER:
        cell = results.cells["model 3", name]
        cell.eaten_up = 4
        cell.left_out["temperature"] = 9
    lines = summary_lines(results_document(results, max_episodes=0), 80)
    said = " ".join(lines)
    assert "model 3: the server refuses temperature, which it wasn't sent; reasoning left no token for 16 res" in said
    assert "Notes on model 3: add --stats." in said
    assert len(lines) <= MOST_LINES
