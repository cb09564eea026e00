"""A plan says what telling two agents apart takes, and the run that it begins costs what it says."""

import hashlib
import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from benchmark.play.cost.pilot import Usage
from benchmark.runs.folder import RunFolder
from benchmark.runs.record import paid_tokens
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
    agents = ("--agent", "planner", "--agent", "random")
    for words, said in (
        (("--agent", "planner", *lake), "there is one, planner: add another --agent"),
        ((*agents, "--scenario", "nim", *lake[2:]), "'nim' has several: leave it out"),
        ((*agents, *lake, "--episodes", 3), "--episodes 3 is less than the pilot plays"),
        ((*AGENTS, *lake, "--budget", 5), "--budget needs a price for 'good'; give --prices FILE"),
    ):
        done = textbench("plan", *words)
        assert (done.code, said in done.err) == (2, True), done.err
    assert server.served == {}


def test_a_pilot_that_the_budget_cuts_short_is_gone_on_with(textbench, server):
    command = ("plan", *AGENTS, *LAKES[:2], "--detect", 0.1, "--quiet", "--prices", "prices.toml", "--out", "small")
    small = textbench(*command, "--budget", 0.01)
    assert (small.code, small.out) == (1, "")
    assert "the pilot costs more than --budget 0.01: name a larger one" in small.err
    assert "the same command with --out small plays the rest" in small.err
    before = sum(server.served.values())
    again = textbench(*command, "--budget", 5, "--json")
    assert json.loads(again.out)["spent"] == pytest.approx(paid("small"))
    assert sum(server.served.values()) > before


def test_a_plan_says_what_it_does_not_know(textbench, server):
    lake = ("--scenario", "frozen-lake", "--quiet", "--detect")
    told = " ".join(textbench("plan", *AGENTS, *lake, 0.1).out.split())
    assert "take an unknown sum, as good, bad has no price (--prices FILE tells it)" in told
    shown = " ".join(textbench("plan", "--agent", "planner", "--agent", "p=planner", *lake, 0.1).out.split())
    assert "all differences of 1 of 1 rows are equal in the pilot" in shown
    assert "take no money" in shown
    few = textbench("plan", "--agent", "planner", "--agent", "random", *lake, 9, "--episodes", 5, "--out", "few")
    assert few.out.splitlines()[-1] == "no more is allowed: textbench compare few"


def test_the_interval_of_the_dollars_holds_them_in_19_of_20_runs():
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(1000):
        costs = rng.gamma(4.0, size=60)
        found = Usage({}, costs[:5], 0.0, 0.0).dollars(60)
        held += found.low <= costs.sum() <= found.high
    assert 910 <= held <= 980
