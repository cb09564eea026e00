"""Games of several players: returns over seats, intervals over seeds, metrics, ratings of tables, values of moves."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from agents.episode import Episode
from benchmark.entries.validation import replay_problems
from benchmark.runs.folder import RunFolder
from benchmark.runs.record import parse_line, recorded, to_line
from benchmark.score.move_losses import VALUE_LOST
from benchmark.score.results import Cell, read_columns
from benchmark.score.scores import rating_rows, score_row, score_rows
from textgames.scenarios import SCENARIOS, Scenario

SHARE = Scenario("share", "TestShare-v0", {"num_players": 3}, 4, 910_000)


def agents(*names):
    return [word for name in names for word in ("--agent", f"{name}=several_players_game:{name}")]


@pytest.fixture
def shared(textbench, suite_with_strangers):
    done = textbench("run", *agents("giver", "taker"), "--scenario", "share-three", "--episodes", 6, "--out", "r")
    assert done.code == 0, done.err
    return Path("r")


@pytest.mark.slow
def test_returns_are_means_over_every_seat_at_every_table(shared):
    """Two rounds. A taker gets 1 and 1 for every giver; a giver 1 for every other giver; the lucky seat 1 more."""
    rows = {row["agent"]: row for row in score_rows(read_columns([shared]))}
    for row in rows.values():
        # of every seed: three seats at its own table, and three at the two tables with the other
        assert row["episodes"] == row["planned"] == 6 * 6
        assert row["rank"] is not None
    luck = 2 / 3  # a third of all seats are lucky, in both rounds
    giver = 2 * np.mean([2, 2, 2, 1, 1, 0]) + luck  # ggg; g-t-g; t-g-t
    taker = 2 * np.mean([1, 1, 1, 2, 2, 3]) + luck
    assert rows["giver"]["mean_return"]["value"] == pytest.approx(giver)
    assert rows["taker"]["mean_return"]["value"] == pytest.approx(taker)
    seats = rows["giver"]["seats"]
    assert list(seats) == ["player_0", "player_1", "player_2"]
    assert np.mean([seat["value"] for seat in seats.values()]) == pytest.approx(giver)
    assert rows["giver"]["metrics"]["gifts"]["value"] == 2.0
    assert rows["taker"]["metrics"]["gifts of all"]["value"] == pytest.approx(np.mean([0, 0, 0, 4, 2, 2]))


def test_intervals_are_over_seeds_and_not_over_seats():
    """Equal games of one seed are no more evidence than one of them."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=20)

    def cell(copies):
        made = Cell(planned=20 * copies)
        for k, value in enumerate(values):
            for copy in range(copies):
                metrics = {"player_0": {"m": value}} if copy == 0 else {}
                me, paid, won = {"player_0": "a"}, {"player_0": value}, {"player_0": False}
                played = Episode("duel", k, None, me, (), paid, won, True, False, metrics=metrics)
                made.add(played, "player_0")
        return made

    once, often = (score_row("a", SCENARIOS["snake-duel"], cell(copies), None, None) for copies in (1, 7))
    assert (once["episodes"], often["episodes"]) == (20, 140)
    for name in ("value", "low", "high"):
        assert once["mean_return"][name] == pytest.approx(often["mean_return"][name])
        assert once["metrics"]["m"][name] == pytest.approx(often["metrics"]["m"][name])  # that six of seven rows lack


def test_metrics_are_kept_and_a_replay_gives_them_again(shared):
    records = list(RunFolder.open(shared).records())
    assert all(set(record.metrics) == {"player_0", "player_1", "player_2"} for record in records)
    record = records[0]
    assert list(replay_problems(record, SHARE)) == []
    record.metrics["player_0"]["gifts"] += 1
    (problem,) = replay_problems(record, SHARE)
    assert problem.startswith("metrics is {'player_0': {'gifts': ")
    without = replace(record, metrics={})  # as records of earlier versions are
    assert list(replay_problems(without, SHARE)) == []
    assert parse_line(to_line(without)) == without
    undefined = replace(record, metrics={"player_0": {"equality": float("nan"), "x": 1}, "player_1": {"y": -np.inf}})
    assert recorded(undefined).metrics == {"player_0": {"x": 1.0}}
    line = json.loads(to_line(record))
    for metrics, sentence in (
        ({"player_9": {"gifts": 1.0}}, "metrics must be those of player_0, player_1, player_2, got 'player_9'"),
        ({"player_0": {"gifts": 1e300}}, "metrics.player_0.gifts must be less than or equal to 1000000000000"),
        ({"player_0": {"m" * 101: 1.0}}, "at most 100 characters"),
        ({"player_0": {str(k): 1.0 for k in range(51)}}, "at most 50 items"),
        ({"player_0": {"gifts": float("nan")}}, "number"),
    ):
        with pytest.raises(ValueError, match=sentence):
            parse_line(json.dumps({**line, "metrics": metrics}).encode())


@pytest.mark.slow
def test_the_value_lost_per_move_is_exact(textbench, suite_with_strangers):
    """Whoever leaves a multiple of three wins; from such a one nobody can lose anything more."""
    done = textbench("run", *agents("ones", "twos"), "--scenario", "two-pile", "--episodes", 9, "--out", "r", "--json")
    assert done.code == 0, done.err
    shown = {row["agent"]: row["metrics"][VALUE_LOST]["value"] for row in json.loads(done.out)["scores"]}
    by_hand = {"ones": [], "twos": []}
    for record in RunFolder.open(Path("r")).records():
        stones = sum({"one": 1, "two": 2}[step.action] for step in record.steps)
        lost = {"player_0": [], "player_1": []}
        for step in record.steps:
            left = stones - {"one": 1, "two": 2}[step.action]
            lost[step.player].append(2.0 if stones % 3 and left % 3 else 0.0)
            stones = left
        for player, agent in record.agents.items():
            by_hand[agent].append((record.seed, np.mean(lost[player])))
    for agent, rows in by_hand.items():
        seeds = sorted({seed for seed, _ in rows})
        expected = np.mean([np.mean([value for seed, value in rows if seed == one]) for one in seeds])
        assert shown[agent] == pytest.approx(expected)
    assert shown["ones"] > 0
    planner = textbench("run", "--agent", "planner", "--agent", "random", "--scenario", "two-pile", "--json")
    rows = {row["agent"]: row for row in json.loads(planner.out)["scores"]}
    assert rows["planner"]["metrics"][VALUE_LOST]["value"] == 0.0 < rows["random"]["metrics"][VALUE_LOST]["value"]
    assert rows["planner"]["normalized"] is None


@pytest.mark.slow
def test_games_of_two_runs_whose_agents_have_the_same_names_all_count(textbench):
    """The names are those of a run; on a board that shows both they are two agents."""
    for folder, first in (("one", "random"), ("two", "greedy")):
        named = ("--agent", f"x={first}", "--agent", "y=planner")
        textbench("run", *named, "--scenario", "tic-tac-toe", "--episodes", 4, "--out", folder, "--quiet")
    for folders in (("one", "two"), ("two", "one")):
        results = read_columns([Path(folder) for folder in folders])
        games = {row["agent"]: row["games"] for row in rating_rows(results)}
        whole = {agent: results.cells[agent, "tic-tac-toe"].episodes for agent in games}
        assert games == whole
        assert len(games) == 4


@pytest.mark.slow
def test_agents_are_ranked_among_those_of_their_own_run(textbench):
    """What the same player gets says how strong its table was."""
    for folder, other in (("strong", "planner"), ("weak", "random")):
        named = ("--agent", f"{folder}=greedy", "--agent", f"{folder}-other={other}")
        textbench("run", *named, "--scenario", "nim", "--episodes", 40, "--out", folder, "--quiet")
    rows = {row["agent"]: row for row in score_rows(read_columns([Path("strong"), Path("weak")]))}
    assert rows["weak"]["mean_return"]["value"] > rows["strong"]["mean_return"]["value"] + 0.3
    ranks = {agent: (row["rank"], row["tied"]) for agent, row in rows.items()}
    assert ranks == {"strong-other": (1, False), "strong": (2, False), "weak": (1, False), "weak-other": (2, False)}
