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
LAKE = ("--scenario", "frozen-lake", "--max-concurrency", 1)
PRICED = ("--prices", "prices.toml", "--quiet", "--json")


@pytest.fixture(autouse=True)
def prices(workplace, monkeypatch):
    """All tokens cost a thousandth of a dollar, and retries come at once."""
    monkeypatch.setattr(pacing, "FIRST_BACK_OFF", 0.001)
    Path("prices.toml").write_text('[prices."m"]\ninput = 1000\noutput = 1000\n')


def cost_of(done):
    return sum(row["cost"] for row in json.loads(done.out)["scores"] if row["cost"] is not None)


ODD = {"faults": {"odd-finish": 0.4, "content-filter": 0.1, "garbage": 0.1}}
INSIDE = ("--agent", "m=told(openai:m, planner)", *LAKE)
DUEL = ("--agent", "openai:m", "--agent", "a=openai:m", "--scenario", "snake-duel", "--protocol", "retry")


@pytest.mark.parametrize(
    ("server", "play"),
    [
        (ODD, INSIDE),
        (ODD, DUEL),
        pytest.param({"faults": {"null-finish": 1.0}, "fault_attempts": 1}, INSIDE, marks=pytest.mark.slow),
        # of 256 tokens, so that the first answer is asked for once more
        pytest.param({"reasoning": 400}, DUEL, marks=pytest.mark.slow),
    ],
)
def test_answers_that_are_not_taken_are_paid_for(textbench, server, play):
    with OpenAIServer(**server) as serving:
        command = ("--base-url", serving.base_url, "--episodes", 5, "--max-retries", 1, *PRICED)
        done = textbench("run", *play, *command, "--out", "r")
        assert cost_of(done) == pytest.approx(serving.tokens_served / 1000)
    records = [record for *_, record in RunFolder.open(Path("r")).lines()]
    assert any("discarded_tokens" in record.measured for record in records)


def test_an_episode_that_fails_counts_for_the_limit_on_money(textbench):
    with OpenAIServer(faults={"odd-finish": 1.0}) as server:
        command = ("--agent", "openai:m", "--base-url", server.base_url, *LAKE, *PRICED, "--max-cost", 1)
        done = textbench("run", *command, "--episodes", 20, "--max-retries", 0, "--out", "r")
        asked, spent = server.served["odd-finish"], server.tokens_served / 1000
        assert f"the money is used up: {spent:.4f} USD spent" in done.err
        assert asked < 10
        assert spent <= 1 + spent / asked
        assert cost_of(done) == pytest.approx(spent)
        resumed = textbench("resume", "r", "--quiet")
        assert "the money is used up" in resumed.err
        assert server.served["odd-finish"] <= asked + 1  # what was paid before is known


@pytest.mark.parametrize(
    "play",
    [
        ("--agent", "m=told(openai:m, planner)", "--scenario", "frozen-lake"),
        ("--agent", "greedy", "--agent", "openai:m", "--scenario", "nim"),
    ],
)
def test_what_the_cache_answers_inside_of_a_wrapper_or_beside_others_is_free(textbench, play):
    options = ("--temperature", 0, "--cache", "cache.db", "--episodes", 2, *PRICED)
    with OpenAIServer() as server:
        first = textbench("run", *play, "--base-url", server.base_url, *options, "--out", "a")
        assert cost_of(first) == pytest.approx(server.tokens_served / 1000)
        asked = server.served["ok"]
        second = textbench("run", *play, "--base-url", server.base_url, *options, "--out", "b")
        assert server.served["ok"] == asked > 0
    assert cost_of(second) == 0


def spent_so_far(message):
    return float(re.search(r"([\d.]+) USD spent of --max-cost", message)[1])


def costs_of(folder):
    return [
        sum(sum(one[:2]) for one in paid_tokens(each).values()) / 1000
        for each in RunFolder.open(Path(folder)).records()
    ]


def test_until_an_episode_has_finished_no_other_one_is_paid_for(textbench):
    with OpenAIServer(latency=0.01) as server:
        options = ("--base-url", server.base_url, "--scenario", "frozen-lake", "--episodes", 50, *PRICED)
        done = textbench("run", "--agent", "openai:m", *options, "--max-cost", 10, "--out", "r")
        paid = server.tokens_served / 1000
    costs = costs_of("r")
    assert len(costs) > 1
    assert spent_so_far(done.err) == pytest.approx(paid, abs=1e-4)
    assert paid < 10 + max(costs)


def test_a_merged_run_knows_what_was_spent(textbench):
    with OpenAIServer() as server:
        options = ("--base-url", server.base_url, "--episodes", 3, *LAKE, *PRICED, "--max-cost", 0.4)
        for offset in (0, 3):
            textbench("run", "--agent", "m=openai:m", *options, "--seed-offset", offset, "--out", f"r{offset}")
        assert textbench("merge", "r0", "r3", "--out", "both").code == 0
        resume = ("resume", "both", "--quiet", "--base-url", server.base_url, "--allow", "openai:m")
        resume += ("--allow", "m=1000/1000 USD")  # a merged run is new here, and so are its prices
        spent = spent_so_far(textbench(*resume).err)
        assert spent == pytest.approx(server.tokens_served / 1000, abs=1e-4)
        assert textbench(*resume, "--max-cost", 100).code == 0
        assert sum(costs_of("both")) == pytest.approx(server.tokens_served / 1000)


def test_a_limit_on_money_that_nobody_can_keep_is_refused_at_the_first_answer(textbench):
    with OpenAIServer(faults={"no-usage": 1.0}) as server:
        command = ("run", *INSIDE[:2], "--base-url", server.base_url, *LAKE, *PRICED, "--episodes", 5)
        done = textbench(*command, "--max-cost", 0.5, "--out", "r")
        assert "the server of 'm' doesn't say how many tokens an answer took, so --max-cost can't be kept" in done.err
        assert server.served["no-usage"] == 1
        assert textbench(*command, "--out", "free").code == 0
