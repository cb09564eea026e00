"""Suites: chosen by name, together with scenarios; whoever can't play a game of theirs plays the others."""

import json
import re
from pathlib import Path

import pytest

from benchmark.runs.folder import RunFolder
from textgames.scenarios import ABOUT_SUITES, SCENARIOS, SUITES


def planned(done):
    """``{scenario: tables}`` of a dry run."""
    assert done.code == 0, done.err
    tables = {}
    for row in json.loads(done.out)["matchups"]:
        tables.setdefault(row["scenario"], []).append(tuple(row["agents"]))
    return tables


def test_a_suite_is_all_of_its_scenarios(textbench):
    dry = ("run", "--agent", "random", "--dry-run", "--json")
    assert set(planned(textbench(*dry, "--suite", "planning"))) == set(SUITES["planning"])
    assert set(planned(textbench(*dry, "--suite", "all"))) == set(SUITES["all"])
    both = {*SUITES["planning"], *SUITES["strategy"], "snake"}
    assert set(planned(textbench(*dry, "--suite", "planning", "--suite", "strategy", "--scenario", "snake"))) == both
    assert set(planned(textbench(*dry))) == set(SUITES["paper"])


@pytest.mark.slow
def test_a_run_of_a_suite_is_resumed_by_its_scenarios(textbench):
    command = ("run", "--suite", "planning", "--agent", "random", "--episodes", 2, "--out", "r", "--quiet")
    assert textbench(*command).code == 0
    settings = RunFolder.open(Path("r")).manifest["settings"]
    assert set(settings["scenarios"]) == set(SUITES["planning"])
    assert "suites" not in settings
    assert textbench("resume", "r", "--episodes", 3, "--quiet").code == 0
    assert len(list(RunFolder.open(Path("r")).records())) == 3 * len(SUITES["planning"])


def test_who_cant_play_a_game_of_a_suite_plays_the_others_and_that_is_said(textbench, suite_with_strangers):
    done = textbench("run", "--suite", suite_with_strangers, "--dry-run", "--json")
    tables = planned(done)
    assert ("greedy",) in tables["frozen-lake"]
    assert {agent for table in tables["share-three"] for agent in table}.isdisjoint({"greedy", "planner"})
    assert "not played by greedy and planner, who can't play these games: share-three, spread-five" in done.err
    # the same where the user names the agent and the suite brings the game
    done = textbench("run", "--suite", suite_with_strangers, "--agent", "greedy", "--agent", "random", "--dry-run")
    assert done.code == 0
    assert "not played by greedy, who can't play these games: share-three, spread-five\n" in done.err


def test_a_named_agent_on_a_named_scenario_that_it_cant_play_is_wrong_usage(textbench, suite_with_strangers):
    command = ("run", "--suite", suite_with_strangers, "--agent", "greedy")
    done = textbench(*command, "--scenario", "share-three", "--dry-run")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("textbench: agent 'greedy' on share-three: greedy and planner can't play Share")
    # and so it is if nothing at all is left
    done = textbench("run", "--agent", "greedy", "--suite", "strangers-only", "--dry-run")
    assert (done.code, "agent 'greedy' on share-three" in done.err) == (2, True)


@pytest.mark.slow
def test_a_run_with_agents_left_out_is_played_resumed_and_extended(textbench, suite_with_strangers):
    command = ("run", "--suite", suite_with_strangers, "--agent", "greedy", "--agent", "random", "--out", "r")
    assert textbench(*command, "--episodes", 2, "--quiet").code == 0
    assert textbench("resume", "r", "--quiet").code == 0
    assert textbench("resume", "r", "--episodes", 3, "--quiet").code == 0
    assert textbench(*command, "--episodes", 4, "--quiet").code == 0
    records = list(RunFolder.open(Path("r")).records())
    assert {tuple(record.agents.values()) for record in records if record.scenario == "spread-five"} == {
        ("random",) * 5
    }
    assert len(records) == 4 * (2 + 1 + 1)


def test_a_dry_run_says_what_a_suite_costs_each_agent(textbench, suite_with_strangers):
    command = ("run", "--suite", suite_with_strangers, "--agent", "random", "--agent", "r=random", "--episodes", 10)
    document = json.loads(textbench(*command, "--dry-run", "--json").out)
    lake, three, five = (SCENARIOS["frozen-lake"].horizon, 4, 4)
    for row in document["agents"]:
        assert row["scenarios"] == 3
        # alone, and at three of the four tables: both mixed ones and its own
        assert row["episodes"] == 10 * (1 + 3 + 3)
        assert row["requests_at_most"] == 10 * (lake + 2 * 3 * three + 2 * 5 * five)
    assert document["episodes"] == 10 * (2 + 4 + 4)
    assert sum(row["requests_at_most"] for row in document["agents"]) == document["requests_at_most"]
    printed = textbench(*command, "--dry-run").out
    assert "each agent" in printed
    agents = [word for name in "abcdef" for word in ("--agent", f"{name}=random")]
    printed = textbench("run", *agents, "--scenario", "snake-duel", "--dry-run").out
    assert re.search(r"snake-duel +6 +30 +1,500 ", printed)


def test_list_shows_suites_and_what_every_scenario_is(textbench):
    document = json.loads(textbench("list", "--json").out)
    assert {name: suite["about"] for name, suite in document["suites"].items()} == dict(ABOUT_SUITES)
    assert document["suites"]["paper"]["scenarios"] == list(SUITES["paper"])
    lake, duel = document["scenarios"]["frozen-lake"], document["scenarios"]["snake-duel"]
    assert (lake["players"], lake["yardstick"]) == (1, "exact (value iteration)")
    assert (duel["players"], duel["yardstick"]) == (2, "planner (search)")
    assert "paper" in lake["suites"]
    printed = textbench("list", "scenarios").out
    assert [line.split()[0] for line in printed.splitlines() if " Text" in line].count("frozen-lake") == 1
    for name in SCENARIOS:
        assert f"\n{name} " in printed
    assert "suites\n" in textbench("list", "suites").out


def test_a_suite_of_opposed_interests_has_one_rating_and_another_says_why_not(textbench, monkeypatch):
    small = {"strategy": ("nim", "matching-pennies"), "social": ("chicken",)}
    monkeypatch.setattr("benchmark.score.overall.SUITES", small)
    agents = ("--agent", "random", "--agent", "planner", "--agent", "greedy")
    play = [word for names in small.values() for name in names for word in ("--scenario", name)]
    done = textbench("run", *agents, *play, "--episodes", 4, "--quiet", "--out", "r", "--json")
    assert done.code == 0
    strategy, social = json.loads(done.out)["suites"]
    assert strategy["ratings"].keys() == {"random", "planner", "greedy"}
    assert sum(one["value"] for one in strategy["ratings"].values()) == pytest.approx(0, abs=1e-6)
    for one in strategy["ratings"].values():
        assert one["low"] < one["value"] < one["high"]
    assert max(strategy["ratings"], key=lambda name: strategy["ratings"][name]["value"]) == "planner"
    assert "ratings" not in social
    told = "social has no rating: in 1 of its games, such as chicken, all may gain or lose together"
    value = f"{strategy['ratings']['planner']['value']:+.0f}"
    assert textbench("leaderboard", "r", "--html", "page.html", "--quiet").code == 0
    page = Path("page.html").read_text()
    for shown in (textbench("leaderboard", "r").out, textbench("leaderboard", "r", "--stats").out, page):
        words = " ".join(shown.split())
        assert told.lower() in words.lower()
        assert "strategy (Elo)" in words
        assert value.replace("-", "\N{MINUS SIGN}") in words or value in words
    # two runs whose agents never met
    others = ("--agent", "a=greedy", "--agent", "b=random")
    assert textbench("run", *others, *play, "--episodes", 2, "--quiet", "--out", "s").code == 0
    found = json.loads(textbench("leaderboard", "r", "s", "--json").out)["suites"][0]
    assert found["unrated"] == "random and a never met in nim"
