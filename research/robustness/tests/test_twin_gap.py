"""The twin gap tells a player that has memorised a game from one that works its moves out."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import benchmark
from agents.baselines.random import RandomPlayer
from agents.baselines.scripted_player import Choice, ScriptedPlayer, as_turn
from agents.baselines.search import PlannerPlayer, search_player_of
from agents.policy import as_requests
from agents.turn import Turn, TurnRequest
from benchmark.runs.plan import find_scenarios
from benchmark.score.move_losses import Decision
from benchmark.score.references import References
from benchmark.show.page.page import render_page
from research.robustness.tables.twin_gap import (
    LEAST_SEEDS,
    Gaps,
    TwinGapView,
    _pairs,
    gap_row,
    paired_gaps,
    twin_gap_rows,
)
from textgames.twins import Twin

EPISODES = 24


class Memoriser(ScriptedPlayer):
    """Plays perfectly what it knows by its text, and anything else at random."""

    name = "memoriser"

    def choose(self, request: TurnRequest) -> Choice:
        try:  # without the rules, it has nothing to go by but the words
            return PlannerPlayer().choose(replace(request, game=None))
        except ValueError:
            return RandomPlayer().choose(request)

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        return [as_turn(self.choose(request)) for request in as_requests(requests)]


class Misled(ScriptedPlayer):
    """Plays perfectly, but for its first move in a twin, which is the worst there is."""

    name = "misled"

    def choose(self, request: TurnRequest) -> Choice:
        if request.history or not isinstance(request.game, Twin):
            return PlannerPlayer().choose(request)
        values = search_player_of(request.game).values(request)
        return Choice(min(values, key=values.__getitem__), "So the story goes.")

    @property
    def history_turns(self) -> int:
        return 1


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return benchmark.evaluate(
        {"memoriser": Memoriser(), "planner": "planner", "random": "random"},
        scenarios=["frozen-lake", "taxi"],
        episodes=EPISODES,
        twins=2,
        out=tmp_path_factory.mktemp("twins") / "run",
        quiet=True,
    )


def gaps_of(results: benchmark.Results) -> dict[str, dict[str, Any]]:
    rows = results.document(max_episodes=0)["twin_gaps"]
    return {row["agent"]: dict(row) for row in rows}


@pytest.mark.slow
def test_who_has_memorised_is_exposed_and_who_works_it_out_is_not(results):
    gaps = gaps_of(results)
    memoriser, planner, random = (gaps[name] for name in ("memoriser", "planner", "random"))
    assert memoriser["gap"]["value"] > 0.8
    assert memoriser["above_zero"]
    for same in (planner, random):  # equal draws, and so equal moves under other names
        assert same["gap"]["value"] == 0.0
        assert -0.25 < same["gap"]["low"] < -0.1  # and still the next seed may differ
        assert 0.1 < same["gap"]["high"] < 0.25
        assert not same["above_zero"]
    assert all((row["scenario"], row["twins"], row["pairs"]) == ("frozen-lake", 2, EPISODES) for row in gaps.values())
    assert all(row["unit"] == "score" for row in gaps.values())


def test_an_answer_that_named_no_action_names_none_in_the_game_either():
    decision = Decision("player_0", "a state", 3, "", 0.5, {})
    twin = find_scenarios(["frozen-lake-twin-1"])["frozen-lake-twin-1"]
    assert _pairs({"a state": decision}, {"a state": decision}, twin) == [(decision, decision)]


def row_of(gaps: np.ndarray) -> TwinGapView:
    """A row of the table, of the gaps in a game that is won or lost."""
    return gap_row("somebody", "a game", [Gaps(gaps, (-1.0, 1.0), 0.95, "score", 2)], [1.0])


def found_above(gaps: np.ndarray, seeds: int, rng: np.random.Generator, runs: int = 200) -> float:
    """Power: in which share of runs of so many seeds, with gaps like these, the gap is said to be above 0."""
    return float(np.mean([row_of(rng.choice(gaps, seeds))["above_zero"] for _ in range(runs)]))


def test_few_episodes_are_enough_for_a_player_that_has_memorised_all(results):
    columns = results.columns
    names = ["frozen-lake", "frozen-lake-twin-1", "frozen-lake-twin-2"]
    gaps = paired_gaps(
        [columns.cells["memoriser", name] for name in names], [columns.scenarios[name] for name in names]
    )
    assert len(gaps) == EPISODES
    rng = np.random.default_rng(0)
    assert found_above(gaps, LEAST_SEEDS - 1, rng) == 0
    assert found_above(gaps, 8, rng) > 0.8
    # who remembers one start in ten, and plays the others like anybody, takes some 80 seeds
    rarely = np.concatenate([gaps, np.zeros(9 * len(gaps))])
    assert found_above(rarely, 40, rng) < 0.5
    assert 0.7 < found_above(rarely, 85, rng) < 0.95


def test_the_interval_is_of_the_highest_level_among_the_runs(results, monkeypatch):
    """A run that looked at its results again and again has the higher one."""
    before = gaps_of(results)["planner"]["gap"]
    monkeypatch.setattr(results.columns.cells["planner", "frozen-lake-twin-2"], "confidence", 0.999)
    (after,) = [row["gap"] for row in twin_gap_rows(results.columns, References()) if row["agent"] == "planner"]
    assert after["low"] < before["low"] < before["high"] < after["high"]


@pytest.mark.parametrize(("seeds", "told"), [(LEAST_SEEDS - 1, False), (LEAST_SEEDS, True)])
def test_no_fewer_than_the_least_seeds_say_that_a_gap_is_above_zero(seeds, told):
    row = gap_row("somebody", "a game", [Gaps(np.ones(seeds), (-0.1, 1.0), 0.95, "score", 2)], [1.0])
    assert (row["gap"]["low"] or 0) > 0
    assert row["above_zero"] is told


@pytest.mark.parametrize("seeds", [2, 5, 50, *(pytest.param(each, marks=pytest.mark.slow) for each in (3, 10))])
@pytest.mark.parametrize("success", [0.5, 0.9])
def test_without_a_true_gap_hardly_any_run_says_that_there_is_one(seeds, success):
    """Who succeeds as often in the game as in both of its twins, whatever the seed."""
    rng, runs = np.random.default_rng(seeds), 800
    won = (rng.random((runs, 3, seeds)) < success).astype(float)
    rows = [row_of(game - np.mean(twins, axis=0)) for game, *twins in won]
    lows, highs = (np.array([row["gap"][end] or 0.0 for row in rows]) for end in ("low", "high"))
    assert np.mean(lows > 0) <= 0.025 + 2 * np.sqrt(0.025 / runs)
    assert np.mean((lows <= 0) & (highs >= 0)) >= 0.95
    assert not any(row["above_zero"] for row in rows) or seeds >= LEAST_SEEDS


@pytest.mark.parametrize("scenario", ["frozen-lake", "cliff-walking", "kuhn-poker"])
def test_three_seeds_say_that_a_gap_is_hardly_known(tmp_path, scenario):
    """Also where a game states no range of returns, and where it has several players."""
    players = {"one": "random", "two": "random"}
    results = benchmark.evaluate(players, scenarios=[scenario], episodes=3, twins=1, out=tmp_path / "run", quiet=True)
    rows = results.document(max_episodes=0)["twin_gaps"]
    assert [row["pairs"] for row in rows] == [3, 3]
    for row in rows:
        low, high = row["gap"]["low"], row["gap"]["high"]
        assert low is not None
        assert high is not None
        assert low < -0.4
        assert high > 0.4
        assert not row["above_zero"]


@pytest.mark.slow
def test_what_was_lost_where_the_story_changed_a_move_is_told(workplace):
    players = {"misled": Misled(), "memoriser": Memoriser(), "planner": "planner"}
    scenarios = ["frozen-lake", "kuhn-poker"]
    results = benchmark.evaluate(players, scenarios=scenarios, episodes=12, twins=2, out="run", quiet=True)
    rows = results.document(max_episodes=0)["twin_gaps"]
    told = {row["agent"]: row for row in rows if row["scenario"] == "frozen-lake"}
    misled, memoriser, planner = (told[name] for name in players)
    # nothing is drawn on this lake, so that its one bad move is all of the gap
    assert misled["gap"]["value"] > 0.1
    assert misled["by_changed_moves"]["value"] == pytest.approx(misled["gap"]["value"])
    assert misled["by_changed_moves"]["low"] <= misled["by_changed_moves"]["value"]
    assert 0 < misled["moves_changed"] <= 1
    assert memoriser["moves_changed"] > 0.4
    assert (
        memoriser["by_changed_moves"]["value"] < memoriser["gap"]["value"]
    )  # most is lost where only the twin came to
    assert planner["moves_changed"] == planner["by_changed_moves"]["value"] == 0.0
    assert {row["by_changed_moves"] for row in rows if row["scenario"] == "kuhn-poker"} == {None}  # its players are two
    assert "by changed moves" in str(results.leaderboard())
    again = benchmark.read_results("run", quiet=True).document(max_episodes=0)["twin_gaps"]
    assert again == rows  # what is kept of it, too


def test_tables_show_the_gap(results):
    board = results.leaderboard()
    assert "twin gap" in str(board)
    assert "twin gap" in board.to_markdown()
    table = (
        render_page(results.document(max_episodes=0)).partition('data-table="twin_gaps"')[2].partition("</table>")[0]
    )
    assert "Twin gap" in table
    assert table.count("<tr") > len(board.document["twin_gaps"])
    assert board.document["twin_gaps"][0]["scenario"] == "frozen-lake"
