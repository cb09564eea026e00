"""Models that reason, behind a real local server: what is recorded, what is said, and what it costs."""

import json
import shutil
from pathlib import Path

import pytest

from benchmark.runs.folder import RunFolder
from tests.agents.openai_server import OpenAIServer
from tests.benchmark.helpers import records_in, steps_in

SERVED = {"agents": ("openai:o",)}
REFUSED_BY_OPENAI = {"temperature": "default", "stop": "", "max_tokens": "max_completion_tokens"}


def test_reasoning_is_recorded_and_what_the_server_refuses_is_said(textbench, behind):
    with OpenAIServer(refused=REFUSED_BY_OPENAI, reasoning=400) as server:
        done = behind(server, "--episodes", 2, "--json", **SERVED)
        assert done.code == 0, done.err
        resumed = textbench("resume", "r", "--episodes", 3)
    assert resumed.code == 0, resumed.err
    assert "it doesn't take 'temperature', which is left out from here on" in done.err
    assert "reasoning ate up a whole response: 25,000 tokens more are allowed" in done.err
    (row,) = json.loads(done.out)["scores"]
    assert (row["left_out"], row["eaten_up"]) == ({"temperature": 2, "stop": 2}, 0)
    assert "openai:o: the server refuses temperature, stop, which it wasn't sent" in " ".join(resumed.out.split())
    folder = RunFolder.open(Path("r"))
    for record in folder.records():
        assert record.measured["left_out"] == {"player_0": ["temperature", "stop"]}
        for step in record.steps:
            assert step.turn.usage.reasoning_tokens == 400 < step.turn.usage[1]
            assert step.turn.reasoning.split() == ["hm"] * 400
            assert step.turn.response.endswith("</action>")
    # another process has to learn it again
    assert [len(session["notices"]) for session in folder.manifest["sessions"]] == [4, 4]


def test_responses_that_reasoning_ate_up_are_counted(behind):
    with OpenAIServer(reasoning=300) as server:
        done = behind(server, "--episodes", 2, "--set", "m.reasoning_tokens=10")
    assert done.code == 0
    assert "allow more tokens: reasoning_tokens = 2048 in the agent's options" in done.err
    asked = len(steps_in("r"))
    assert asked > 2  # of two episodes, in which random moves stand in for the answers
    assert f"m: reasoning left no token for {asked} responses" in " ".join(done.out.split())


def test_tokens_that_the_provider_had_in_its_cache_cost_less(behind):
    Path("prices.toml").write_text('[prices."o"]\ninput = 10.0\noutput = 40.0\ncached_input = 1.0\n')
    with OpenAIServer(prompt_cache=0.5) as server:
        done = behind(server, "--episodes", 2, "--prices", "prices.toml", "--json", **SERVED)
    assert done.code == 0, done.err
    records = records_in("r")
    prompt, completion = (sum(step.turn.usage[i] for r in records for step in r.steps) for i in (0, 1))
    cached = sum(record.measured["provider_cached_tokens"]["player_0"] for record in records)
    assert 0.4 * prompt < cached <= 0.5 * prompt
    dollars = ((prompt - cached) * 10 + cached * 1 + completion * 40) / 1e6
    assert json.loads(done.out)["scores"][0]["cost"] == dollars


def test_an_open_model_that_reasons_is_played_by_what_follows_its_reasoning(textbench, behind):
    """Also where its options come from a run's folder: neither decides where anything is sent."""
    thought = "<think>I could answer <action>left</action></think><action>right</action>"
    sets = ("--set", "m.chat_template_kwargs.enable_thinking=true", "--set", "m.thinking_budget=300")
    with OpenAIServer(respond=lambda request: thought) as server:
        assert behind(server, "--episodes", 2, *sets, "--mode", "direct").code == 0
        assert textbench("resume", "r", "--episodes", 3).code == 0
    (card,) = RunFolder.open(Path("r")).manifest["agents"]
    assert card["settings"]["model_chat_template_kwargs"] == {"enable_thinking": True}
    assert card["settings"]["model_thinking_budget"] == 300
    assert {(step.turn.response, step.action, step.turn.reasoning) for step in steps_in("r")} == {
        ("<action>right</action>", "right", "I could answer <action>left</action>")
    }


OPTIONS = {
    "reasoning_effort": "minimal",
    "reasoning_tokens": 900,
    "thinking_budget": 700,
    "max_tokens_field": "max_completion_tokens",
    "chat_template_kwargs": {"enable_thinking": True},
    "extra_body": {"top_k": 20},
}


def test_settings_of_reasoning_are_options_that_are_sent_and_kept(textbench, behind):
    words = [each for name, value in OPTIONS.items() for each in (f"--{name.replace('_', '-')}", value)]
    words = [json.dumps(word) if isinstance(word, dict) else word for word in words]
    with OpenAIServer() as server:
        agents = {"agents": ("m=openai:o", "n=openai:o")}
        done = behind(server, "--episodes", 2, "--set", "n.reasoning_effort=high", *words, "--quiet", **agents)
        assert done.code == 0, done.err
        shutil.copytree("r", "theirs")  # a folder that nobody here has allowed anything
        resume = ("resume", "theirs", "--episodes", 3, "--base-url", server.base_url, "--allow", "openai:o")
        refused = textbench(*resume)
        allowed = textbench(*resume, "--allow", 'extra_body={"top_k": 20}')
    assert (refused.code, allowed.code) == (2, 0), allowed.err
    assert """the extra_body {"top_k": 20}, which you haven't""" in " ".join(refused.err.split())
    *_, request = (one for one in server.requests if one["reasoning_effort"] == "minimal")
    assert (request["max_completion_tokens"], request["thinking_token_budget"], request["top_k"]) == (1156, 700, 20)
    assert request["chat_template_kwargs"] == {"enable_thinking": True}
    assert {one["reasoning_effort"] for one in server.requests} == {"minimal", "high"}
    manifest = RunFolder.open(Path("r")).manifest
    assert {name: manifest["settings"][name] for name in OPTIONS} == OPTIONS
    assert [card["settings"]["model_reasoning_effort"] for card in manifest["agents"]] == ["minimal", "high"]


@pytest.mark.parametrize(
    ("parameter", "words", "fix"),
    [
        ("thinking_token_budget", ("--thinking-budget", 5), "(leave out --thinking-budget)"),
        ("top_k", ("--extra-body", '{"top_k": 2}'), "(leave 'top_k' out of extra_body)"),
        ("tools", ("--protocol", "tools"), "or ask a server that takes them: vLLM's by --enable-auto-tool-choice"),
    ],
)
def test_a_servers_refusal_of_a_setting_comes_with_the_fix(behind, parameter, words, fix):
    with OpenAIServer(refused={parameter: ""}) as server:
        done = behind(server, "--episodes", 2, *words)
    told = " ".join(done.err.split())
    assert (done.code, f"Unsupported parameter: '{parameter}' is not supported with this model." in told) == (1, True)
    assert fix in told
