"""What is paid for is counted, whatever became of it: behind a real local server, which knows what it has served."""

import json
import re
from pathlib import Path

import pytest

from agents.models.served import pacing
from benchmark.runs.folder import RunFolder
from benchmark.runs.record import paid_tokens
from tests.agents.openai_server import OpenAIServer

pytestmark = pytest.mark.usefixtures("added_players")
ONE = ("--max-concurrency", 1)
PRICED = ("--prices", "prices.toml", "--quiet", "--json")


@pytest.fixture(autouse=True)
def prices(workplace, monkeypatch):
    """All tokens cost a thousandth of a dollar, and retries come at once."""
    monkeypatch.setattr(pacing, "FIRST_BACK_OFF", 0.001)
    Path("prices.toml").write_text('[prices."m"]\ninput = 1000\noutput = 1000\n')


def cost_of(done):
    return sum(row["cost"] for row in json.loads(done.out)["scores"] if row["cost"] is not None)


SLOW = pytest.mark.slow
ODD = {"faults": {"odd-finish": 0.4, "content-filter": 0.1, "garbage": 0.1}}
INSIDE, INSIDE_AGENTS = ("--scenario", "frozen-lake", *ONE), ("m=told(openai:m, planner)",)
DUEL, DUEL_AGENTS = ("--scenario", "snake-duel", "--protocol", "retry"), ("openai:m", "a=openai:m")


@pytest.mark.parametrize(
    ("server", "agents", "words"),
    [
        (ODD, INSIDE_AGENTS, INSIDE),
        (ODD, DUEL_AGENTS, DUEL),
        pytest.param({"faults": {"null-finish": 1.0}, "fault_attempts": 1}, INSIDE_AGENTS, INSIDE, marks=SLOW),
        # of 256 tokens, so that the first answer is asked for once more
        pytest.param({"reasoning": 400}, DUEL_AGENTS, DUEL, marks=SLOW),
    ],
)
def test_answers_that_are_not_taken_are_paid_for(behind, server, agents, words):
    with OpenAIServer(**server) as serving:
        done = behind(serving, *words, "--episodes", 5, "--max-retries", 1, *PRICED, agents=agents)
        assert cost_of(done) == pytest.approx(serving.tokens_served / 1000)
    records = [record for *_, record in RunFolder.open(Path("r")).lines()]
    assert any("discarded_tokens" in record.measured for record in records)


def test_an_episode_that_fails_counts_for_the_limit_on_money(textbench, behind):
    with OpenAIServer(faults={"odd-finish": 1.0}) as server:
        done = behind(server, *ONE, *PRICED, "--max-cost", 1, "--episodes", 20, "--max-retries", 0)
        asked, spent = server.served["odd-finish"], server.tokens_served / 1000
        assert f"the money is used up: {spent:.4f} USD spent" in done.err
        assert asked < 10
        assert spent <= 1 + spent / asked
        assert cost_of(done) == pytest.approx(spent)
        assert "the money is used up" in textbench("resume", "r", "--quiet").err
        assert server.served["odd-finish"] <= asked + 1  # what was paid before is known


@pytest.mark.parametrize(
    ("agents", "scenario"), [(INSIDE_AGENTS, "frozen-lake"), (("greedy", "openai:m"), "nim")], ids=["inside", "beside"]
)
def test_what_the_cache_answers_inside_of_a_wrapper_or_beside_others_is_free(behind, agents, scenario):
    words = ("--scenario", scenario, "--temperature", 0, "--cache", "cache.db", "--episodes", 2, *PRICED)
    with OpenAIServer() as server:
        first = behind(server, *words, "--out", "a", agents=agents)
        assert cost_of(first) == pytest.approx(server.tokens_served / 1000)
        asked = server.served["ok"]
        second = behind(server, *words, "--out", "b", agents=agents)
        assert server.served["ok"] == asked > 0
    assert cost_of(second) == 0


def spent_so_far(message):
    return float(re.search(r"([\d.]+) USD spent of --max-cost", message)[1])


def costs_of(folder):
    return [
        sum(sum(one[:2]) for one in paid_tokens(each).values()) / 1000
        for each in RunFolder.open(Path(folder)).records()
    ]


def test_until_an_episode_has_finished_no_other_one_is_paid_for(behind):
    with OpenAIServer(latency=0.01) as server:
        done = behind(server, "--episodes", 50, *PRICED, "--max-cost", 10)
        paid = server.tokens_served / 1000
    costs = costs_of("r")
    assert len(costs) > 1
    assert spent_so_far(done.err) == pytest.approx(paid, abs=1e-4)
    assert paid < 10 + max(costs)


def test_a_merged_run_knows_what_was_spent(textbench, behind):
    with OpenAIServer() as server:
        for offset in (0, 3):
            words = ("--episodes", 3, *ONE, *PRICED, "--max-cost", 0.4, "--seed-offset", offset)
            behind(server, *words, "--out", f"r{offset}")
        assert textbench("merge", "r0", "r3", "--out", "both").code == 0
        resume = ("resume", "both", "--quiet", "--base-url", server.base_url, "--allow", "openai:m")
        resume += ("--allow", "m=1000/1000 USD")  # a merged run is new here, and so are its prices
        spent = spent_so_far(textbench(*resume).err)
        assert spent == pytest.approx(server.tokens_served / 1000, abs=1e-4)
        assert textbench(*resume, "--max-cost", 100).code == 0
        assert sum(costs_of("both")) == pytest.approx(server.tokens_served / 1000)


def test_a_limit_on_money_that_nobody_can_keep_is_refused_at_the_first_answer(behind):
    with OpenAIServer(faults={"no-usage": 1.0}) as server:
        words = (*INSIDE, *PRICED, "--episodes", 5)
        done = behind(server, *words, "--max-cost", 0.5, agents=INSIDE_AGENTS)
        assert "the server of 'm' doesn't say how many tokens an answer took, so --max-cost can't be kept" in done.err
        assert server.served["no-usage"] == 1
        assert behind(server, *words, "--out", "free", agents=INSIDE_AGENTS).code == 0
