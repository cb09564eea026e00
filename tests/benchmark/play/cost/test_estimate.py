"""What a dry run says of tokens and money, beside what the same run then takes."""

import json
from pathlib import Path

import pytest

from benchmark.runs.folder import RunFolder
from tests.agents.openai_server import OpenAIServer

PLAY = ("--scenario", "frozen-lake", "--scenario", "tic-tac-toe", "--agent", "openai:m", "--agent", "random")


@pytest.mark.slow
def test_a_dry_run_estimates_tokens_and_money(textbench):
    Path("prices.toml").write_text('[prices."m"]\ninput = 2.0\noutput = 8.0\n')
    with OpenAIServer() as server:
        command = ("run", *PLAY, "--base-url", server.base_url, "--episodes", 10, "--prices", "prices.toml")
        told = json.loads(textbench(*command, "--dry-run", "--json").out)
        shown = textbench(*command, "--dry-run").out
        assert server.served == {}
        assert textbench(*command, "--out", "r", "--quiet").code == 0
    (one,) = told["estimates"]
    assert one["agent"] == "openai:m"
    assert one["completion_tokens_at_most"] == 256 * 10 * (
        8 + 2 * 9
    )  # as many decisions as there may be, at both seats
    assert one["cost_of_prompts"] == pytest.approx(one["prompt_tokens"] * 2 / 1e6, rel=1e-4)
    most = one["prompt_tokens_at_most"] * 2 + one["completion_tokens_at_most"] * 8
    assert one["cost_at_most"] == pytest.approx(most / 1e6, rel=1e-4)
    assert "tokens and money" in shown
    assert "prices: --prices" in shown
    records = list(RunFolder.open(Path("r")).records())
    mine = [s for r in records for s in r.steps if r.agents[s.player] == "openai:m"]
    assert 0.6 < one["decisions"] / len(mine) < 1.6
    words = sum(step.turn.usage[0] for step in mine)  # this server's tokens are words, of which an English one has 1.3
    assert 1 < one["prompt_tokens"] / words < 2.5


def test_a_budget_for_reasoning_counts_and_players_without_a_model_do_not(textbench):
    sets = ("--set", "o.reasoning_effort=low", "--set", "o.base_url=http://127.0.0.1:9/v1")
    done = textbench("run", "--agent", "o=openai:x", *sets, "--scenario", "frozen-lake", "--dry-run", "--json")
    (one,) = json.loads(done.out)["estimates"]
    assert one["completion_tokens_at_most"] == 25_256 * 50 * 8
    assert one["price"] is one["cost_at_most"] is None
    sets = ("--set", "o.thinking_budget=100", "--set", "o.base_url=http://127.0.0.1:9/v1")
    done = textbench("run", "--agent", "o=openai:x", *sets, "--scenario", "frozen-lake", "--dry-run", "--json")
    (one,) = json.loads(done.out)["estimates"]
    assert one["completion_tokens_at_most"] == 356 * 50 * 8
    assert "estimates" not in json.loads(textbench("run", "--agent", "random", "--dry-run", "--json").out)


def told(textbench, *options):
    Path("prices.toml").write_text('[prices."m"]\ninput = 2.0\noutput = 8.0\n')
    agent = () if "--agent" in options else ("--agent", "openai:m")
    command = ("run", *agent, "--base-url", "http://127.0.0.1:9/v1", "--scenario", "frozen-lake", *options)
    return json.loads(textbench(*command, "--prices", "prices.toml", "--dry-run", "--json").out)


def test_at_most_is_every_answer_that_protocols_allow_whatever_their_order(textbench):
    (once,) = told(textbench)["estimates"]
    (six,) = told(textbench, "--protocol", "retry:5")["estimates"]
    for name in ("prompt_tokens_at_most", "completion_tokens_at_most", "cost_at_most"):
        assert six[name] == pytest.approx(6 * once[name])
    assert six["prompt_tokens"] == once["prompt_tokens"]
    (one,), (other,) = (
        told(textbench, "--protocols", names)["estimates"] for names in ("random,retry", "retry,random")
    )
    assert one["cost_at_most"] == pytest.approx(other["cost_at_most"]) == pytest.approx(4 * once["cost_at_most"])


def test_at_most_has_long_answers_in_the_turns_that_prompts_show(textbench):
    (once,), (memory,) = (told(textbench, *options)["estimates"] for options in ((), ("--history", "3")))
    more = memory["prompt_tokens_at_most"] - once["prompt_tokens_at_most"]
    assert more >= 50 * 8 * 3 * 256
    assert memory["prompt_tokens"] - once["prompt_tokens"] < more / 4  # what random play said is short


def test_a_forecast_counts_the_questions_of_a_wrapper_and_the_answers_of_a_protocol(textbench, added_players):
    until = ("--until", "0.2", "--episodes", "200")
    (plain,) = told(textbench, *until)["estimates"]
    (asked,) = told(textbench, *until, "--agent", "many(openai:m)")["estimates"]
    (tried,) = told(textbench, *until, "--protocol", "retry:5")["estimates"]
    assert asked["prompt_tokens"] == pytest.approx(8 * plain["prompt_tokens"], abs=8)
    assert asked["completion_tokens_at_most"] == 8 * plain["completion_tokens_at_most"]
    assert tried["completion_tokens_at_most"] == 6 * plain["completion_tokens_at_most"]
