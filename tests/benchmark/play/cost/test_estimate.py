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
    assert one["completion_tokens_at_most"] == pytest.approx(256 * one["decisions"], rel=0.01)
    dollars = one["prompt_tokens"] * 2 / 1e6
    assert one["cost_of_prompts"] == dollars
    assert one["cost_at_most"] == dollars + one["completion_tokens_at_most"] * 8 / 1e6
    assert "tokens and money" in shown
    assert "prices: --prices" in shown
    records = list(RunFolder.open(Path("r")).records())
    mine = [s for r in records for s in r["steps"] if r["agents"][s["player"]] == "openai:m"]
    assert 0.6 < one["decisions"] / len(mine) < 1.6
    words = sum(step["tokens"][0] for step in mine)  # this server's tokens are words, of which an English one has 1.3
    assert 1 < one["prompt_tokens"] / words < 2.5


def test_a_budget_for_reasoning_counts_and_players_without_a_model_do_not(textbench):
    sets = ("--set", "o.reasoning_effort=low", "--set", "o.base_url=http://127.0.0.1:9/v1")
    done = textbench("run", "--agent", "o=openai:x", *sets, "--scenario", "frozen-lake", "--dry-run", "--json")
    (one,) = json.loads(done.out)["estimates"]
    assert one["completion_tokens_at_most"] == pytest.approx(25_256 * one["decisions"], rel=0.01)
    assert one["price"] is one["cost_at_most"] is None
    sets = ("--set", "o.thinking_budget=100", "--set", "o.base_url=http://127.0.0.1:9/v1")
    done = textbench("run", "--agent", "o=openai:x", *sets, "--scenario", "frozen-lake", "--dry-run", "--json")
    (one,) = json.loads(done.out)["estimates"]
    assert one["completion_tokens_at_most"] == pytest.approx(356 * one["decisions"], rel=0.01)
    assert "estimates" not in json.loads(textbench("run", "--agent", "random", "--dry-run", "--json").out)


def test_prompts_are_paid_once_for_every_answer_that_a_protocol_allows(textbench):
    Path("prices.toml").write_text('[prices."m"]\ninput = 2.0\noutput = 8.0\n')
    command = ("run", "--agent", "openai:m", "--base-url", "http://127.0.0.1:9/v1", "--scenario", "frozen-lake")
    options = ("--prices", "prices.toml", "--protocol", "retry:5", "--dry-run", "--json")
    (one,) = json.loads(textbench(*command, *options).out)["estimates"]
    assert one["cost_at_most"] == pytest.approx(6 * one["cost_of_prompts"] + one["completion_tokens_at_most"] * 8 / 1e6)
