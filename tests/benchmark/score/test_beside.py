"""The tables beside the scores: every share of reliability and of skills by hand."""

from dataclasses import replace
from pathlib import Path

import pytest

import benchmark
from agents import Episode, Step, Turn
from agents.baselines.search import search_player_of
from agents.turn import Refused
from benchmark.runs.folder import RunFolder
from benchmark.runs.replay import replay, requests_of
from benchmark.score.beside import reliability_rows
from benchmark.score.results import Cell, ResultColumns
from benchmark.show.board import leaderboard_tables
from benchmark.show.document_of import results_document
from tests.benchmark.stubborn_players import Mute
from textgames import SCENARIOS
from textgames.yardsticks import find_yardstick

GAMES = ("taxi", "frozen-lake-slippery", "tic-tac-toe", "snake")
EPISODES = 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        place = tmp_path_factory.mktemp("skill")
        patch.setenv("TEXTBENCH_CACHE_DIR", str(place / "cache"))
        agents = {name: name for name in ("random", "greedy", "planner")}
        benchmark.evaluate(agents, scenarios=GAMES, episodes=EPISODES, out=place / "run", quiet=True)
        yield place / "run"


@pytest.mark.slow
def test_every_share_is_that_of_a_count_by_hand_and_who_loses_nothing_has_no_row(folder):
    results = benchmark.read_results(folder, quiet=True).leaderboard().document["skill"]
    rows = {(row["agent"], row["scenario"]): row for row in results}
    games = set(GAMES) - {"snake"}  # whose values aren't known
    assert rows.keys() == {(agent, game) for agent in ("random", "greedy") for game in games}
    assert all(rows["greedy", game]["kinds"]["greedy"]["lost"]["value"] == pytest.approx(1.0) for game in games)
    assert rows["random", "tic-tac-toe"]["episodes"] == 2 * 2 * EPISODES  # a seed's games with two others in two seats
    scenario = SCENARIOS["frozen-lake-slippery"]._replace(protocol="random")
    yardstick = find_yardstick(scenario.game())
    lost = dict.fromkeys(("all", "first", "last", "only"), 0.0)
    counted = dict.fromkeys(lost, 0)
    for record in RunFolder.open(folder).records():
        if record.scenario != scenario.name or record.agents["player_0"] != "random":
            continue
        played = replay(record, scenario)
        for number, step in enumerate(played.steps):
            values = yardstick.values(played.states[number], step.steps_left, "player_0")
            ordered = sorted(values.values())
            is_one = {
                "all": True,
                "first": number == 0,
                "last": number == len(played.steps) - 1,
                "only": ordered[-1] - ordered[-2] > 1e-9,
            }
            for kind, is_it in is_one.items():
                lost[kind] += is_it * (ordered[-1] - values[step.action])
                counted[kind] += is_it
    row = rows["random", scenario.name]
    assert row["lost"]["value"] == pytest.approx(lost["all"] / EPISODES)
    for kind in ("first", "last", "only"):
        shares = row["kinds"][kind]
        assert shares["lost"]["value"] == pytest.approx(lost[kind] / lost["all"])
        assert shares["lost"]["low"] <= shares["lost"]["value"] <= shares["lost"]["high"]
        assert shares["decisions"] == pytest.approx(counted[kind] / counted["all"])


def test_where_something_is_hidden_values_are_of_what_is_known(workplace):
    """The planner plays these games as well as anybody can who doesn't know the secret, and so loses nothing."""
    hidden = ("bandit", "guess-number")
    results = benchmark.evaluate({"random": "random", "planner": "planner"}, scenarios=hidden, episodes=4, quiet=True)
    rows = {(row["agent"], row["scenario"]): row for row in results.leaderboard().document["skill"]}
    assert set(rows) == {("random", name) for name in hidden}
    for name in hidden:
        scenario = SCENARIOS[name]._replace(protocol="random")
        game = scenario.game()
        lost = 0.0
        for record in RunFolder.open(results.folders[0]).records():
            if record.scenario == name and record.agents["player_0"] == "random":
                for step, request in requests_of(replay(record, scenario)):
                    values = search_player_of(game).values(request)
                    lost += max(values.values()) - values[step.action]
        assert rows["random", name]["lost"]["value"] == pytest.approx(lost / 4)
        assert lost > 1


@pytest.mark.parametrize("protocol", ["forfeit", "random"])
def test_what_cannot_be_read_loses_all_that_a_mute_player_loses(workplace, protocol):
    results = benchmark.evaluate({"mute": Mute()}, scenarios="taxi", episodes=4, protocol=protocol, quiet=True)
    (row,) = results.leaderboard().document["skill"]
    assert row["lost"]["value"] > 1
    assert row["kinds"]["unread"]["lost"]["value"] == pytest.approx(1.0)
    assert row["kinds"]["unread"]["decisions"] == 1.0


GOOD = Step(0, "player_0", "", Turn("x"), "left", True, None, 0.0)
CUT = replace(GOOD, turn=Turn("x", finish_reason="length"))
GIVEN_UP = replace(GOOD, turn=Turn("x", finish_reason="refusal"), action="", valid=False, unreadable="no_tag")
KINDS_OF_EPISODES = {
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
            steps, error = KINDS_OF_EPISODES[kind]
            me, paid, won = {"player_0": agent}, {"player_0": 1.0}, {"player_0": True}
            told = {"error": error, "measured": {"seconds": 1.0}}
            played = Episode("frozen-lake", scenario.seed(k), None, me, tuple(steps), paid, won, True, False, **told)
            cell.add(played, "player_0")
    return results


def test_every_share_is_counted():
    (row,) = reliability_rows(board({"a": list(KINDS_OF_EPISODES)}), ["a"])
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
