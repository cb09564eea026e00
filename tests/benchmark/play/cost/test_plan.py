"""A plan says what telling two agents apart takes, and the run that it begins costs what it says."""

import hashlib
import json
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmark.play.cost.pilot import Usage, contrasts
from benchmark.runs.folder import RunFolder
from benchmark.runs.record import paid_tokens
from benchmark.score.comparison import board_family
from benchmark.score.overall import Overall
from benchmark.score.references import References
from benchmark.score.results import read_columns
from tests.agents.openai_server import OpenAIServer

LAKES = ("--scenario", "frozen-lake", "--scenario", "frozen-lake-slippery")
AGENTS = ("--agent", "good=openai:m", "--agent", "bad=openai:local")
PRICES = '[prices."m"]\ninput = 20.0\noutput = 500.0\n[prices."local"]\ninput = 2.0\noutput = 50.0\n'


def answer(request):
    """Right or down, or any move; with a thought of 0 to 15 words, which the answer's price depends on."""
    drawn = hashlib.sha256(json.dumps(request["messages"]).encode()).digest()
    moves = ("right", "down") if request["model"] == "m" else ("left", "down", "right", "up")
    move = moves[drawn[0] % len(moves)]
    return f"<think>{'hm ' * (drawn[1] % 16)}</think><plan>{move}</plan><action>{move}</action>"


@pytest.fixture
def server(workplace, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    Path("prices.toml").write_text(PRICES)
    with OpenAIServer(respond=answer) as serving:
        monkeypatch.setenv("OPENAI_BASE_URL", serving.base_url)
        yield serving


def paid(folder):
    price = {"good": (20.0, 500.0), "bad": (2.0, 50.0)}
    records = [record for *_, record in RunFolder.open(Path(folder)).lines()]
    tokens = [(*record.agents.values(), *next(iter(paid_tokens(record).values()))) for record in records]
    return sum((sent * price[agent][0] + said * price[agent][1]) / 1e6 for agent, sent, said, *_ in tokens)


def test_the_run_that_a_plan_names_costs_what_it_says_and_pays_nothing_twice(textbench, server):
    command = ("plan", *AGENTS, *LAKES, "--prices", "prices.toml", "--detect", 0.5, "--out", "r", "--quiet")
    plan = json.loads(textbench(*command, "--budget", 1, "--json").out)
    assert (plan["pilot"], plan["budget"], plan["unpriced"]) == (5, 1.0, [])
    assert plan["spent"] == pytest.approx(paid("r"))
    asked, spent = sum(server.served.values()), plan["spent"]
    assert 5 < plan["episodes"] <= plan["episodes_needed"]
    # the plan is made of the folder: nothing is asked again
    told = " ".join(textbench(*command, "--budget", 1).out.split())
    assert sum(server.served.values()) == asked
    cost = plan["cost"]
    assert f"take {cost['value']:.2f} USD ({cost['low']:.2f} to {cost['high']:.2f}; {spent:.2f} are spent)" in told
    assert told.endswith(plan["command"])
    words = shlex.split(plan["command"])
    assert words == f"textbench resume r --episodes {plan['episodes']} --max-cost 1".split()
    before = (Path("r") / "episodes.jsonl").read_text()
    assert textbench(*words[1:], "--quiet").code == 0
    assert (Path("r") / "episodes.jsonl").read_text().startswith(before)
    assert cost["low"] <= paid("r") <= min(cost["high"], 1)
    assert cost["high"] < 3 * cost["low"]
    # and what it is to detect is what the comparison then corrects for
    compared = json.loads(textbench("compare", "good", "bad", "--in", "r", "--json").out)
    assert plan["level"] == pytest.approx(0.05 / compared["overall"]["comparisons"])


def test_a_small_budget_has_a_smaller_power(textbench, server):
    command = ("plan", *AGENTS, *LAKES, "--prices", "prices.toml", "--detect", 0.2, "--out", "r", "--quiet", "--json")
    whole = json.loads(textbench(*command).out)
    some = json.loads(textbench(*command, "--budget", whole["cost"]["value"] / 4).out)
    assert some["episodes"] == pytest.approx(whole["episodes"] / 4, rel=0.05)
    assert some["cost"]["value"] <= some["budget"]
    for row, less in zip(whole["pairs"], some["pairs"], strict=True):
        assert row["power"] is None or less["power"] < row["power"]
    assert whole["pairs"][0]["power"] == pytest.approx(0.8, abs=0.02)
    # a run's own file: its episodes and its limit are the most that are planned
    Path("run.toml").write_text(f"episodes = {some['episodes'] - 3}\nmax_cost = {some['budget']}\n")
    filed = textbench(*command[:-1], "--config", "run.toml").out
    assert f"allows {some['episodes'] - 3} episodes of each; it takes {whole['episodes']}" in " ".join(filed.split())


def test_what_cant_be_planned_is_said(textbench, server):
    lake = ("--scenario", "frozen-lake", "--detect", 0.1, "--quiet")
    alone = textbench("plan", "--agent", "planner", *lake)
    assert (alone.code, "there is one, planner: add another --agent" in alone.err) == (2, True)
    duel = textbench("plan", *AGENTS, "--scenario", "nim", "--detect", 0.1)
    assert (duel.code, "'nim' has several: leave it out" in duel.err) == (2, True)
    unpriced = textbench("plan", *AGENTS, *lake, "--budget", 5)
    assert (unpriced.code, "needs a price for 'good'; give --prices FILE" in unpriced.err) == (2, True)
    assert server.served == {}
    told = " ".join(textbench("plan", *AGENTS, *lake).out.split())
    assert "take an unknown sum, as good, bad has no price (--prices FILE tells it)" in told
    small = textbench("plan", *AGENTS, *lake, "--prices", "prices.toml", "--budget", 0.01, "--out", "small")
    assert (small.code, small.out) == (1, "")
    assert "the pilot costs more than --budget 0.01: name a larger one" in small.err
    assert "the same command with --out small plays the rest" in small.err
    before = sum(server.served.values())
    again = textbench("plan", *AGENTS, *lake, "--prices", "prices.toml", "--budget", 5, "--out", "small", "--json")
    assert json.loads(again.out)["spent"] == pytest.approx(paid("small"))
    assert sum(server.served.values()) > before
    same = textbench("plan", "--agent", "planner", "--agent", "p=planner", *lake, "--json")
    plan = json.loads(same.out)
    assert (plan["pairs"][0]["episodes_needed"], plan["pairs"][0]["power"]) == (None, None)
    assert plan["cost"]["value"] == plan["spent"] == 0
    shown = " ".join(textbench("plan", "--agent", "planner", "--agent", "p=planner", *lake).out.split())
    assert "all differences of 1 of 1 rows are equal in the pilot" in shown
    assert "take no money" in shown
    few = textbench(
        "plan", "--agent", "planner", "--agent", "random", *lake[:2], "--detect", 9, "--episodes", 5, "--out", "few"
    )
    assert few.out.splitlines()[-1] == "no more is allowed: textbench compare few"
    fewer = textbench("plan", "--agent", "planner", "--agent", "random", *lake, "--episodes", 3)
    assert (fewer.code, "--episodes 3 is less than the pilot plays" in fewer.err) == (2, True)


def test_the_interval_of_the_dollars_holds_them_in_19_of_20_runs():
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(1000):
        costs = rng.gamma(4.0, size=60)
        found = Usage({}, costs[:5], 0.0, 0.0).dollars(60)
        held += found.low <= costs.sum() <= found.high
    assert 910 <= held <= 980


@pytest.mark.slow
def test_the_least_of_a_forecast_until_is_no_more_than_what_is_paid(textbench, server):
    """Its answers may be as short as they like; each was taken to be as long as it may be, at both ends."""
    lake = ("--scenario", "frozen-lake", "--prices", "prices.toml")
    command = ("run", "--agent", "good=openai:m", *lake, "--until", 0.4, "--episodes", 50)
    least, most = json.loads(textbench(*command, "--dry-run", "--json").out)["total"]["cost"]
    assert textbench(*command, "--out", "r", "--quiet").code == 0
    assert least <= paid("r") <= most


@pytest.mark.slow
def test_five_starts_tell_the_episodes_that_many_starts_do_within_their_interval(textbench):
    agents = ("--agent", "random", "--agent", "greedy", "--agent", "planner", "--scenario", "snake", *LAKES)
    assert textbench("run", *agents, "--episodes", 200, "--quiet", "--out", "r").code == 0
    whole = read_columns(["r"])
    references = References(whole)
    truths, held = contrasts(whole, references, 0.1, 0.01)[:3], []
    for start in range(0, 200, 5):
        cells = {}
        for (agent, name), cell in whole.cells.items():
            first = whole.scenarios[name].first_seed + start
            cells[agent, name] = cell.on_seeds(range(first, first + 5))
        found = contrasts(replace(whole, cells=cells), references, 0.1, 0.01)
        for truth, one in zip(truths, found[:3], strict=True):
            assert truth["scenario"] is one["scenario"] is None
            told = one["episodes_needed"] or {"low": 0, "high": 0}
            held.append(told["low"] <= truth["episodes_needed"]["value"] <= told["high"])
    assert np.mean(held) > 0.85
    # and the episodes that it names show a difference of this size in about four of five runs
    family, found = board_family(whole), []
    difference = abs(Overall(whole, references).difference("random", "planner").estimate.value)
    (row,) = (
        one
        for one in contrasts(whole, references, difference, 0.05 / family)[:3]
        if {one["a"], one["b"]} == {"random", "planner"}
    )
    number = row["episodes_needed"]["value"]
    for start in range(0, 201 - number, number):
        cells = {
            key: cell.on_seeds(range(first := whole.scenarios[key[1]].first_seed + start, first + number))
            for key, cell in whole.cells.items()
        }
        part = Overall(replace(whole, cells=cells), references)
        found.append(family * part.difference("random", "planner").p < 0.05)
    assert np.mean(found) > 0.6
