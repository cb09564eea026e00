"""What is played: suites and scenarios, who can't play them, and what a dry run says and refuses of it."""

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from benchmark.runs.folder import RunFolder
from tests.benchmark.helpers import records_in, refused
from textgames.scenarios import ABOUT_SUITES, SCENARIOS, SUITES


def planned(done):
    """``{scenario: tables}`` of a dry run."""
    assert done.code == 0, done.err
    tables = {}
    for row in json.loads(done.out)["matchups"]:
        tables.setdefault(row["scenario"], []).append(tuple(row["agents"]))
    return tables


def test_a_suite_is_all_of_its_scenarios(textbench):
    both = {*SUITES["planning"], *SUITES["strategy"], "snake"}
    for words, names in (
        (("--suite", "all"), SUITES["all"]),
        (("--suite", "planning", "--suite", "strategy", "--scenario", "snake"), both),
        ((), SUITES["paper"]),
    ):
        assert set(planned(textbench("run", "--agent", "random", "--dry-run", "--json", *words))) == {*names}


def test_who_cant_play_a_game_of_a_suite_plays_the_others_and_that_is_said(textbench, suite_with_strangers):
    done = textbench("run", "--suite", suite_with_strangers, "--dry-run", "--json")
    tables = planned(done)
    assert ("greedy",) in tables["frozen-lake"]
    assert {agent for table in tables["share-three"] for agent in table}.isdisjoint({"greedy", "planner"})
    assert "not played by greedy and planner, who can't play these games: share-three, spread-five" in done.err
    # a named agent is wrong usage on a named scenario, and if nothing at all is left
    for games in (("--suite", suite_with_strangers, "--scenario", "share-three"), ("--suite", "strangers-only")):
        done = textbench("run", "--agent", "greedy", *games, "--dry-run")
        refused(done, "agent 'greedy' on share-three: greedy and planner can't play Share")


@pytest.mark.slow
def test_a_run_with_agents_left_out_is_played_resumed_and_extended(textbench, suite_with_strangers):
    command = ("run", "--suite", suite_with_strangers, "--agent", "greedy", "--agent", "random", "--out", "r")
    assert textbench(*command, "--episodes", 2, "--quiet").code == 0
    assert textbench("resume", "r", "--episodes", 3, "--quiet").code == 0
    assert textbench(*command, "--episodes", 4, "--quiet").code == 0
    assert "suites" not in RunFolder.open(Path("r")).manifest["settings"]
    tables = [tuple(one.agents.values()) for one in records_in("r") if one.scenario == "spread-five"]
    assert tables == [("random",) * 5] * 4
    assert len(records_in("r")) == 4 * (2 + 1 + 1)


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
    assert re.search(r"share-three +2 +4 +40 ", printed)


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
    assert all(f"\n{name} " in printed for name in SCENARIOS)


def test_a_suite_of_opposed_interests_has_one_rating_and_another_says_why_not(textbench, monkeypatch):
    small = {"strategy": ("nim", "matching-pennies"), "social": ("chicken",)}
    monkeypatch.setattr("benchmark.score.overall.SUITES", small)
    play = [word for names in small.values() for name in names for word in ("--scenario", name)]
    agents = ("--agent", "random", "--agent", "planner")
    done = textbench("run", *agents, *play, "--episodes", 4, "--quiet", "--out", "r", "--json")
    assert done.code == 0
    strategy, social = json.loads(done.out)["suites"]
    ratings = strategy["ratings"]
    assert ratings.keys() == {"random", "planner"}
    assert sum(one["value"] for one in ratings.values()) == pytest.approx(0, abs=1e-6)
    assert all(one["low"] < one["value"] < one["high"] for one in ratings.values())
    assert ratings["planner"]["value"] > 0
    assert "ratings" not in social
    told = " ".join(textbench("leaderboard", "r", "--stats").out.split()).lower()
    assert "social has no rating: in 1 of its games, such as chicken, all may gain or lose together" in told
    # two runs whose agents never met
    others = ("--agent", "a=planner", "--agent", "b=random")
    assert textbench("run", *others, *play, "--episodes", 2, "--quiet", "--out", "s").code == 0
    found = json.loads(textbench("leaderboard", "r", "s", "--json").out)["suites"][0]
    assert found["unrated"] == "random and a never met in nim"


LAKE = ("--scenario", "frozen-lake", "--episodes", "2")
SERVER = ("--base-url", "http://127.0.0.1:9/v1")
TOOLS, SEEN = "--agent openai:m --protocol tools", "--agent openai:m --observe image"
REFUSED = {
    "--agent gguf:notes.gguf": "isn't in GGUF format",
    "--agent hf:on-nothing": "no folder './gone'",
    "--agent vllm:some/model": "vllm:some/model needs vLLM, which isn't installed: pip install",
    "--agent openai:m --max-cost 1": "--max-cost needs a price for 'openai:m'",
    "--agent tiny --set tiny.device=tpu": "device is auto, cpu, cuda, cuda:N or mps, got 'tpu'",
    "--agent hf:some/model --set hf:some/model.thinking_budget=9 --legal-only": "thinking_budget",
    # words of protocols
    "--agent random --protocol ranodm": "--protocol: protocol must be one of random, default, forfeit, retry, legal-on",
    "--agent random --moves hidden": "--moves: moves must be listed or unlisted, got 'hidden'",
    "--agent random --protocols random": "several protocols stand side by side",
    "--agent random --protocols random,unlistd": "got 'unlistd' (did you mean 'unlisted'?)",
    "--agent random --protocols all --protocol retry": "--protocol can't be given with --protocols",
    "--agent random --protocols all --moves unlisted": "--moves can't be given with --protocols",
    # legal answers alone
    "--agent openai:m --legal-only --mode direct": "OpenAI's API takes no grammar",
    "--agent openai:m --legal-only --set openai:m.grammar=gbnf": "in the mode direct alone",
    "--agent openai:m --legal-only --set openai:m.grammar=ebnf": "grammar is gbnf or structured",
    "--agent tiny --legal-only --protocol retry": "--legal-only leaves nothing that can't be read",
    "--agent tiny --legal-only --scenario guess-number": "GuessNumber doesn't list its legal actions",
    "--agent tiny --agent tiny-lake --set tiny-lake.legal_only=true": "a run has one protocol, and legal_only",
    "--agent tiny --set tiny.legal_only=true --protocol forfeit": "leave out protocol = 'forfeit'",
    # tools and pictures
    "--agent tiny --protocol tools": "tiny can't be played with tools, which are offered to models behind servers",
    f"{TOOLS} --set openai:m.route=completions": "by the routes chat and responses: serve it",
    f"{TOOLS} --prompts prefixed --mode direct": "prompts with prefix = '<action>' need answers in",
    f"{TOOLS} --set openai:m.tools=true": "named 'tools'; there are: base_url",
    "--agent planner --observe image": "agent 'planner' reads text, and observe = image shows pictures",
    f"{SEEN} --set openai:m.route=completions": "agent 'openai:m' reads text, and observe = image shows pictures",
    "--agent random --observe imag": "--observe can't be 'imag' (did you mean 'image'?); accepted: text, image, both",
    "--agent random --observe both --protocol retry+image": "observe = both contradicts the protocol 'retry+image'",
    f"{SEEN} --legal-only": "+image and +both go with the protocols random, default",
    # reasoning
    "--agent openai:m --reasoning-effort 4": "an effort of reasoning is a word of the server's, such as minimal",
    "--agent openai:m --extra-body top_k": """a table is written as JSON, such as '{"top_k": 20}', got 'top_k'""",
    """--agent openai:m --extra-body '{"k": "sk-0123456789abcdefghij0123456789"}'""": "holds what looks like a key",
}


@pytest.mark.parametrize(("words", "said"), REFUSED.items())
def test_what_a_run_refuses_is_one_sentence_before_the_first_episode(textbench, words, said):
    Path("on-nothing").mkdir()
    Path("on-nothing/adapter_config.json").write_text('{"base_model_name_or_path": "./gone"}')
    Path("notes.gguf").write_text("nothing")
    before = sorted(Path.cwd().iterdir())
    command = ("run", *LAKE, *(SERVER if "openai" in words else ()), *shlex.split(words))
    dry = textbench(*command, "--dry-run")
    refused(dry, said)
    if "hf:some/model" not in words:  # which would be looked for first
        assert textbench(*command).err == dry.err
    assert sorted(Path.cwd().iterdir()) == before


def test_a_missing_package_is_said(textbench, monkeypatch):
    for agent, package in (("smollm2-lake", "peft"), ("tiny", "torch")):
        monkeypatch.setitem(sys.modules, package, None)
        dry = textbench("run", "--agent", agent, *LAKE, "--dry-run")
        refused(dry, f"{agent} needs {package}: pip install")
        assert textbench("run", "--agent", agent, *LAKE).err == dry.err


def test_what_is_only_known_later_is_not_refused(textbench, workplace, monkeypatch):
    """A key isn't needed to ask what a run would take, and nothing is loaded, fetched or asked."""
    monkeypatch.setitem(sys.modules, "agents.models.local.transformers", None)
    agents = ("openai:gpt-4o-mini", "hf:some/model", "tiny", "planner")
    named = [word for agent in agents for word in ("--agent", agent)]
    done = textbench("run", *named, *LAKE, "--cache", "responses.sqlite", "--dry-run")
    assert (done.code, done.err) == (0, "")
    assert list(workplace.iterdir()) == []
    legal = ("--set", "openai:m.grammar=gbnf", "--legal-only", "--mode", "direct")
    assert textbench("run", "--agent", "openai:m", *SERVER, *legal, *LAKE, "--dry-run").code == 0


@pytest.mark.slow
def test_a_limit_that_isnt_enough_is_not_called_enough(textbench):
    arguments = ("run", "--agent", "random", "--scenario", "bandit", "--dry-run", "--until")
    few = textbench(*arguments, "0.05", "--episodes", 4).out
    assert "with the most that are allowed not every score is known to 0.05" in " ".join(few.split())
    enough = textbench(*arguments, "2", "--episodes", 400).out
    assert "that a scripted player needs for every score to be known to 2;" in " ".join(enough.split())


def test_dollars_and_hours_of_all_agents_are_added_up(textbench, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    prices = '[prices."cheap"]\ninput = 1.0\noutput = 2.0\n[prices."dear"]\ninput = 10.0\noutput = 20.0\n'
    Path("prices.toml").write_text(prices)
    agents = ("--agent", "cheap=openai:m", "--agent", "dear=openai:m", "--agent", "random")
    more = (*SERVER, "--scenario", "frozen-lake", "--prices", "prices.toml", "--dry-run", "--until", "0.3")
    total = json.loads(textbench("run", *agents, *more, "--json").out)["total"]
    alone = json.loads(textbench("run", *agents[:2], *more, "--json").out)["total"]
    assert total["cost"] == [pytest.approx(11 * end) for end in alone["cost"]]
    assert total["hours"][1] == pytest.approx(2 * alone["hours"][1])
    assert total["hours"][1] > 0
    told = " ".join(textbench("run", *agents, *more).out.split())
    assert f"all agents together: {total['cost'][0]:.2f} to {total['cost'][1]:.2f} USD" in told
    assert "hours" in told
