"""Reliability is counted apart from skill: every share by hand."""

from dataclasses import replace
from pathlib import Path

import pytest

from agents import Episode, Step, Turn
from agents.turn import Refused
from benchmark.score.beside import reliability_rows
from benchmark.score.results import Cell, ResultColumns
from benchmark.show.board import leaderboard_tables
from benchmark.show.document_of import results_document
from tests.benchmark.score.test_scores import SCENARIOS

GOOD = Step(0, "player_0", "", Turn("x"), "left", True, None, 0.0)
CUT = replace(GOOD, turn=Turn("x", finish_reason="length"))
GIVEN_UP = replace(GOOD, turn=Turn("x", finish_reason="refusal"), action="", valid=False, unreadable="no_tag")
EPISODES = {
    # (steps, the error)
    "twice asked": ([replace(GOOD, refused=(Refused(Turn("", finish_reason="length"), "empty"),))], None),
    "given up": ([GOOD, GIVEN_UP], None),
    "cut off, and read all the same": ([CUT] * 2, None),
    "plain": ([GOOD, GOOD], None),
    "late": ([GOOD], "round 1 (player_0): no answer from https://example.org within 5 s (the last of 2 attempts)"),
    "down": ([], "round 0 (player_0): the server answered with status 500"),
}


def board(episodes) -> ResultColumns:
    scenario = SCENARIOS["frozen-lake"]._replace(protocol="retry")
    sources = [(Path("made"), {"kind": "textbench-run", "textbench": {}})]
    results = ResultColumns(sources=sources, source_complete=[False], scenarios={"frozen-lake": scenario})
    for agent, kinds in episodes.items():
        results.agents[agent] = {"name": agent, "spec": agent, "kind": "python", "settings": {}}
        results.agent_source[agent] = 0
        cell = results.cells[agent, "frozen-lake"] = Cell(planned=len(kinds))
        for k, kind in enumerate(kinds):
            steps, error = EPISODES[kind]
            me, paid, won = {"player_0": agent}, {"player_0": 1.0}, {"player_0": True}
            told = {"error": error, "measured": {"seconds": 1.0}}
            played = Episode("frozen-lake", scenario.seed(k), None, me, tuple(steps), paid, won, True, False, **told)
            cell.add(played, "player_0")
    return results


def test_every_share_is_counted():
    (row,) = reliability_rows(board({"a": list(EPISODES)}), ["a"])
    assert (row["protocol"], row["episodes"], row["responses"]) == ("retry", 6, 8)
    shares = {name: row[name]["value"] for name in ("invalid", "cut_off", "refused")}
    assert shares == {"invalid": 2 / 8, "cut_off": 3 / 8, "refused": 1 / 8}
    assert row["forfeited"]["value"] == 1 / 4
    assert row["timed_out"]["value"] == row["failed"]["value"] == pytest.approx(1 / 6)
    for name in (*shares, "forfeited", "timed_out", "failed"):
        assert 0 <= row[name]["low"] < row[name]["value"] < row[name]["high"] <= 1


def test_a_response_counts_once_though_a_scenario_has_several_rows_of_a_seed():
    results = board({"a": ["twice asked", "given up", "plain"]})
    cell = results.cells["a", "frozen-lake"]
    rows = {name: list(column) for name, column in cell.columns.items()}
    for name, column in cell.columns.items():  # the second and the third seed twice more, as of a game with two seats
        column.extend(rows[name][1:] * 2)
    (row,) = reliability_rows(results, ["a"])
    assert row["responses"] == 2 + 3 * (2 + 2)
    assert row["invalid"]["value"] == pytest.approx((1 + 3 * 1) / 14)
    assert row["refused"]["value"] == pytest.approx(3 / 14)
    assert row["forfeited"]["value"] == pytest.approx(3 / 7)


def test_a_player_that_never_failed_may_still_fail_next_time():
    (row,) = reliability_rows(board({"a": ["plain"] * 20}), ["a"])
    assert row["invalid"]["value"] == row["forfeited"]["value"] == 0.0
    assert row["forfeited"]["high"] == pytest.approx(0.168, abs=0.02)  # Clopper and Pearson's of 0 in 20


def test_a_player_of_whom_nothing_was_scored_has_no_shares_of_responses():
    (row,) = reliability_rows(board({"a": ["down", "late"]}), ["a"])
    assert (row["invalid"], row["responses"], row["failed"]["value"]) == (None, 0, 0.5)


def test_the_table_shows_what_happened_and_nothing_else():
    document = results_document(board({"a": ["plain", "given up"] * 4, "b": ["plain"] * 8}), max_episodes=0)
    sheet = next(one for one in leaderboard_tables(document) if one.title == "reliability")
    assert sheet.titles == ["agent", "responses", "invalid", "refused", "forfeited"]
    assert {row[0]: row[4].partition(" ")[0] for row in sheet.texts} == {"a": "50.0%", "b": "0.0%"}
