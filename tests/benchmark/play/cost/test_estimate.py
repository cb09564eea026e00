"""What tokens cost, of one model and of several inside of a wrapper, and what a dry run says of them."""

import json
from pathlib import Path

import pytest

from benchmark.errors import UsageError
from benchmark.play.cost.prices import agent_prices
from benchmark.play.options import RunOptions
from benchmark.runs.folder import RunFolder
from tests.agents.openai_server import OpenAIServer


def told(textbench, *options):
    Path("prices.toml").write_text('[prices."m"]\ninput = 2.0\noutput = 8.0\n')
    agent = () if "--agent" in options else ("--agent", "openai:m")
    command = ("run", *agent, "--base-url", "http://127.0.0.1:9/v1", "--scenario", "frozen-lake", *options)
    return json.loads(textbench(*command, "--prices", "prices.toml", "--dry-run", "--json").out)


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
    for option, tokens in (("reasoning_effort=low", 25_256), ("thinking_budget=100", 356)):
        (one,) = told(textbench, "--agent", "o=openai:x", "--set", f"o.{option}")["estimates"]
        assert one["completion_tokens_at_most"] == tokens * 50 * 8
        assert one["price"] is one["cost_at_most"] is None
    assert "estimates" not in json.loads(textbench("run", "--agent", "random", "--dry-run", "--json").out)


def test_at_most_is_every_long_answer_that_a_protocol_allows_in_the_turns_that_prompts_show(textbench, added_players):
    ((once,), (six,), (memory,), (asked,), (both,)) = (
        told(textbench, *options)["estimates"]
        for options in (
            (),
            ("--protocol", "retry:5"),
            ("--history", "3"),
            ("--agent", "many(openai:m)"),
            ("--protocols", "retry,random"),
        )
    )
    for name in ("prompt_tokens_at_most", "completion_tokens_at_most", "cost_at_most"):
        assert six[name] == pytest.approx(6 * once[name])
    assert six["prompt_tokens"] == once["prompt_tokens"]
    assert both["cost_at_most"] == pytest.approx(4 * once["cost_at_most"])
    assert memory["prompt_tokens_at_most"] - once["prompt_tokens_at_most"] >= 50 * 8 * 3 * 256
    assert memory["prompt_tokens"] - once["prompt_tokens"] < 50 * 8 * 3 * 100  # what random play said is short
    assert asked["prompt_tokens"] == pytest.approx(8 * once["prompt_tokens"], abs=8)
    assert asked["completion_tokens_at_most"] == 8 * once["completion_tokens_at_most"]


pytestmark = pytest.mark.usefixtures("added_players")
ONE, OTHER = {"input": 1.0, "output": 1.0}, {"input": 1000.0, "output": 1000.0}


def price_of(spec, table, before=None, max_cost=1.0):
    """The price of an agent whose card has the first player's model, as those of wrappers have it."""
    with open("prices.toml", "w") as file:
        for name, price in table.items():
            file.write(f'[prices."{name}"]\ninput = {price["input"]}\noutput = {price["output"]}\n')
    options = RunOptions(agents=(f"r={spec}",), max_cost=max_cost, prices="prices.toml" if table else None)
    model = None if "planner," in spec else "m"
    card = {"name": "r", "spec": spec, "settings": {"model": model}}
    return agent_prices([card], options, {} if before is None else {"r": before}).get("r")


@pytest.mark.parametrize(
    ("spec", "table", "price"),
    [
        ("openai:m", {"m": ONE, "m2": OTHER}, ONE),
        ("either(openai:m, openai:m2)", {"m": ONE, "m2": ONE}, ONE),
        ("either(openai:m, openai:m2)", {"m": ONE, "m2": OTHER, "r": OTHER}, OTHER),
        ("either(planner, openai:m2)", {"m2": OTHER}, OTHER),
        ("either(planner, many(openai:m2))", {"openai:m2": OTHER}, OTHER),
    ],
)
def test_a_wrapper_has_the_price_of_all_that_are_paid_inside(workplace, spec, table, price):
    assert price_of(spec, table) == price
    assert price_of(spec, table, before={"input": 5.0, "output": 5.0}) == price
    assert price_of(spec, {}, before=price) == price  # a resume without the file


def test_a_wrapper_whose_models_have_several_prices_has_none(workplace):
    spec, table = "either(openai:m, openai:m2)", {"m": ONE, "m2": OTHER}
    for before in (None, ONE):
        assert price_of(spec, table, before, max_cost=None) is None
        with pytest.raises(
            UsageError, match=r"'r', one for m, m2: their tokens are counted together.*\[prices\.\"r\"\]"
        ):
            price_of(spec, table, before)
    with pytest.raises(UsageError, match=r"price for 'r'; give --prices FILE with \[prices\.\"m2\"\]"):
        price_of("either(planner, openai:m2)", {})
