"""``--setting NAME=VALUE``: checked by the game, part of the scenario, and never ranked with the standard one."""

import io
import json
import sys
from pathlib import Path

import gymnasium as gym
import pytest

import benchmark
from benchmark.runs import find_scenarios
from textgames import SCENARIOS, known_scenario

NAME = "frozen-lake(size=6)"
OWN = """
from textgames import register
from textgames.frozen_lake import FrozenLake

class Labelled(FrozenLake):
    def __init__(self, size=4, label="a"):
        super().__init__(size=size)

register("OwnLake-v0", Labelled, max_steps=8)
"""


def test_a_run_with_settings_is_another_scenario_and_resumes(textbench):
    done = textbench("run", "--agent", "planner", "--scenario", "frozen-lake", "--setting", "size=6", "--episodes", 2,
                     "--out", "runs/a", "--json")  # fmt: skip
    assert done.code == 0, done.err
    (score,) = json.loads(done.out)["scores"]
    assert (score["scenario"], score["success_rate"]["value"]) == (NAME, 1)
    manifest = json.loads(Path("runs/a/manifest.json").read_text())
    told = manifest["scenarios"][NAME]
    made = gym.make("TextFrozenLake-v0", size=6).unwrapped
    assert (told["kwargs"]["size"], told["horizon"]) == (6, made.rules.max_steps)
    assert manifest["settings"]["scenarios"] == [NAME]
    assert textbench("resume", "runs/a", "--episodes", 3).code == 0
    by_name = textbench("run", "--agent", "planner", "--scenario", NAME, "--episodes", 3, "--out", "runs/a")
    assert by_name.code == 0, by_name.err  # the same run, by the scenario's name


def test_other_settings_are_no_part_of_the_standard_score():
    results = benchmark.evaluate(["planner", "random"], scenarios=["frozen-lake", NAME], episodes=2, quiet=True)
    document = results.leaderboard().document
    assert document["overall_scenarios"] == ["frozen-lake"]
    assert {row["scenario"] for row in document["scores"]} == {"frozen-lake", NAME}


def test_settings_of_the_standard_are_the_standard():
    lake = SCENARIOS["frozen-lake"]
    assert lake.with_settings(size=4, axes=False, max_steps=8) is lake
    assert lake.with_settings(size=6, twin=2).name == f"{NAME}-twin-2"
    assert lake.with_settings(level=3) == lake.level(3)
    turned = lake.with_settings(is_slippery=True, size=6)
    assert turned == known_scenario(turned.name) == find_scenarios([turned.name])[turned.name]
    assert lake.with_settings(is_slippery=1, size=6).name == turned.name
    assert turned.standard_name == "frozen-lake"


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("sise=6", "no setting 'sise'; it has size, frozen_probability"),
        ("size=1", "size must be a whole number from 2 to 100, got 1"),
        ("size", "--setting takes NAME=VALUE, got 'size'"),
        ("size=big", "size must be a whole number"),
        ("twin=1.0", "twin must be a whole number of at least 0, got 1.0"),
        ("level=", "level must be a whole number from 1 to 10, got ''"),
        ("max_steps=0", "max_steps must be a whole number of at least 1"),
        ("max_steps=1000000", "episodes have at most 100,000 rounds"),
        ("invalid_action=default", "no setting 'invalid_action'"),
    ],
)
def test_a_wrong_setting_is_said_before_the_first_episode(textbench, setting, told):
    for command in (("run", "--scenario", "frozen-lake", "--dry-run"), ("play", "frozen-lake")):
        done = textbench(*command, "--setting", setting)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert f"frozen-lake: {told}" in done.err.replace("FrozenLake has ", "") or told in done.err


def test_names_that_are_not_as_they_are_written(textbench):
    for name, told in {
        "frozen-lake(size=4)": "is frozen-lake",
        "frozen-lake( size=6)": f"is {NAME}",
        "frozen-lake(size)": "the settings in a name are (NAME=VALUE,...), such as (size=6), got (size)",
        "frozen-lake(a=1}\nb={c=1)": "the settings in a name are",
    }.items():
        done = textbench("run", "--scenario", name, "--dry-run")
        assert done.code == 2
        assert told in done.err, done.err
        assert known_scenario(name) is None


def test_a_variable_may_list_scenarios_with_several_settings(textbench, monkeypatch):
    monkeypatch.setenv("TEXTBENCH_SCENARIOS", "snake,frozen-lake(is_slippery=true,size=6)")
    done = textbench("run", "--agent", "random", "--dry-run", "--json")
    named = [row["scenario"] for row in json.loads(done.out)["matchups"]]
    assert named == ["snake", "frozen-lake(is_slippery=true,size=6)"]


def test_a_person_plays_a_larger_lake(textbench, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("right\n" * 20))
    done = textbench("play", "frozen-lake", "--setting", "size=6", "--setting", "frozen_probability=1")
    assert done.code == 0, done.err
    assert "6 wide, 6 high" in done.err
    assert "18 steps left" in done.err


def test_a_game_of_ones_own_is_named_with_its_settings(textbench, workplace):
    (workplace / "own.py").write_text(OWN, encoding="utf-8")
    name = "own:OwnLake-v0(size=5)"
    given = textbench("run", "--agent", "random", "--scenario", "own:OwnLake-v0", "--setting", "size=5",
                      "--episodes", 1, "--out", "runs/own")  # fmt: skip
    named = textbench("run", "--agent", "random", "--scenario", name, "--episodes", 2, "--out", "runs/own")
    assert (given.code, named.code) == (0, 0), given.err + named.err
    assert name in named.out
    assert "--import own\n" in named.err
    for setting in ("size=nan", 'label={"a": 1}', "label=null"):
        refused = textbench("run", "--scenario", "own:OwnLake-v0", "--setting", setting, "--dry-run")
        assert refused.code == 2
    assert "the settings in a name are" in refused.err
