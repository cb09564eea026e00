"""``textbench inspect`` and ``textbench exploitability``: their lines, their JSON and their messages."""

import json

import pytest

from tests.benchmark.helpers import PLAYERS


def test_table_and_json_say_the_same(textbench):
    arguments = ("inspect", "planner", "--scenario", "frozen-lake-slippery", "--episode", 2, "--samples", 1)
    table = textbench(*arguments).out
    assert "planner on frozen-lake-slippery, seed 20002" in table
    assert "100.0% on a best action, regret 0.000 per step" in table
    data = json.loads(textbench(*arguments, "--json").out)
    assert (data["seed"], data["values"]) == (20_002, "exact")
    assert all(step["action"] in step["best_actions"] and step["regret"] == 0 for step in data["steps"])
    assert f"\n{len(data['steps']) - 1:4}  " in table
    # of a hundred actions those have a column that were played or are best
    table = textbench("inspect", "planner", "--scenario", "mastermind", "--samples", 1).out
    assert "3 of 64 actions have a column" in table
    assert table.count(">* 100.0%") == 3
    assert "Return -3, a success. On average 100.0% on a best action, regret 0.000 per step." in table


def test_uniform_play_in_kuhn_poker(textbench):
    text = textbench("exploitability", "random").out
    assert "random in kuhn-poker: exploitability 0.4583, exact (12 information sets)" in text
    assert "a best response as player_0 gets +0.5000 from random as player_1" in text
    data = json.loads(textbench("exploitability", "random", "--json").out)
    assert data["value"] == data["low"] == data["high"] == pytest.approx(11 / 24)
    assert (data["agent"], data["scenario"], data["samples"]) == ("random", "kuhn-poker", None)
    text = textbench("exploitability", f"{PLAYERS}:Always", "--samples", 4).out
    assert "from 4 responses at each (12 information sets)" in text
    assert "100.0% of the responses were invalid and played the default action" in text
