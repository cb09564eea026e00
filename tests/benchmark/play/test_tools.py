"""``--protocol tools``: a model behind a real local server acts by calling a tool, and nothing else counts."""

import json
from pathlib import Path

import pytest

from agents import LanguageAgentPolicy, PromptMap, TurnRequest
from agents.models.cache import ResponseCache, cached
from agents.models.openai import OpenAIModel
from agents.models.tools import Tool
from benchmark.runs.folder import RunFolder
from benchmark.runs.plan import Plan
from benchmark.runs.replay import replay
from tests.agents.openai_server import OpenAIServer

LAKE = ("--scenario", "frozen-lake", "--episodes", 2, "--quiet")
MOVES = ["left", "down", "right", "up"]


def action_of(request):
    """The schema of the argument that a request of either route asks for."""
    (tool,) = request["tools"]
    return tool.get("function", tool)["parameters"]["properties"]["action"]


def steps_of(folder):
    return [step for record in RunFolder.open(Path(folder)).records() for step in record.steps]


@pytest.mark.parametrize("route", ["chat", "responses"])
def test_a_model_that_calls_the_tool_is_played_by_its_calls(textbench, route):
    """The text that it writes beside the call is kept, and read by no game."""
    said = "<think>hm</think><action>up</action>"
    with OpenAIServer(
        respond=lambda request: said, calls=lambda request: [("act", {"action": action_of(request)["enum"][1]})]
    ) as server:
        command = ("run", "--agent", "m=openai:m", "--agent", "random", "--base-url", server.base_url, *LAKE, "--json")
        options = ("--history", 1, "--set", f"m.route={route}")
        done = textbench(*command, "--protocol", "tools", *options, "--out", "tools")
        assert done.code == 0, done.err
        assert textbench("resume", "tools", "--episodes", 3, "--quiet").code == 0
        assert textbench(*command, "--out", "text").code == 0
    folder = RunFolder.open(Path("tools"))
    plan = Plan.from_manifest(folder.manifest)
    records = [record for record in folder.records() if "m" in record.agents.values()]
    assert {(s.turn.response, s.action, s.valid) for r in records for s in r.steps} == {
        ("<action>down</action>", "down", True)
    }
    assert all("up" in step.turn.cut and "act" in step.turn.tool_calls for r in records for step in r.steps)
    for record in records:  # as any other is replayed
        assert replay(record, plan.scenarios["frozen-lake"]).episode.returns == record.returns
    offered = [request for request in server.requests if "tools" in request]
    assert all(action_of(request) == {"type": "string", "enum": MOVES} for request in offered)
    assert not any("stop" in request or "<action>" in json.dumps(request) for request in offered)
    asked = [request.get("messages") or request["input"] for request in offered]
    *_, called, result = max(asked, key=len)
    assert (result["content"] if route == "chat" else result["output"]).count("call the tool act") == 1
    function = called["tool_calls"][0]["function"] if route == "chat" else called
    assert (function["name"], json.loads(function["arguments"])) == ("act", {"action": "down"})
    assert folder.manifest["settings"]["protocol"] == "tools"
    assert {card["name"]: card["settings"].get("tools") for card in folder.manifest["agents"]} == {
        "m": True,
        "random": None,
    }
    assert {row["protocol"] for row in json.loads(done.out)["scores"]} == {"tools"}
    exported = textbench("export", "tools", "--sft", "lines.jsonl", "--agent", "m")
    assert "they were answered by calls of a tool (--protocol tools)" in " ".join((exported.out + exported.err).split())
    board = json.loads(textbench("leaderboard", "tools", "text", "--json").out)
    assert {row["scenario"] for row in board["scores"]} == {"frozen-lake", "frozen-lake (tools)"}


@pytest.mark.parametrize(
    ("calls", "response", "unreadable", "told"),
    [
        ([], "", "empty", "text in place of a call of the tool, such as '<action>down</action>'"),
        ([("move", {"action": "down"})], "<action></action>", "empty", "isn't in the form asked for"),
        ([("act", {"move": "down"})], "<action></action>", "empty", "isn't in the form asked for"),
        ([("act", {"action": 1})], "<action></action>", "empty", "isn't in the form asked for"),
        ([("act", {"action": "fly"})], "<action>fly</action>", "unknown_name", "a name that is no legal action there"),
        ([("act", {"action": "up"})] * 2, "<action>up</action>" * 2, "several_tags", "isn't in the form asked for"),
    ],
)
def test_an_answer_without_the_one_call_is_unreadable_and_a_random_move(textbench, calls, response, unreadable, told):
    with OpenAIServer(respond=lambda request: "<action>down</action>", calls=lambda request: calls) as server:
        command = ("--agent", "m=openai:m", "--base-url", server.base_url, "--protocol", "tools", *LAKE[:-1])
        done = textbench("run", *command, "--out", "r")
    steps = steps_of("r")
    assert {(step.turn.response, step.unreadable, step.valid) for step in steps} == {(response, unreadable, False)}
    assert all(step.action in MOVES for step in steps)
    assert told in " ".join(done.err.split())


def test_actions_that_are_not_listed_are_a_text_in_the_words_of_the_game(textbench):
    with OpenAIServer(calls=lambda request: [("act", {"action": "50"})]) as server:
        run = ("run", "--agent", "m=openai:m", "--base-url", server.base_url, "--protocol", "tools", "--quiet")
        for more in (("guess-number",), ("frozen-lake", "--moves", "unlisted")):
            assert textbench(*run, "--episodes", 1, "--out", more[0], "--scenario", *more).code in (0, 1)
    schemas = [action_of(request) for request in server.requests if "tools" in request]
    assert not any("enum" in one for one in schemas)
    assert all(step.valid for step in steps_of("guess-number")[:1])
    assert {schema["description"] for schema in schemas if "rules above" in schema["description"]}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("tiny",), "tiny can't be played with tools, which are offered to models behind servers"),
        (("openai:m", "--set", "openai:m.route=completions"), "by the routes chat and responses: serve it"),
        (("openai:m", "--prompts", "prefixed", "--mode", "direct"), "prompts with prefix = '<action>' need answers in"),
        (("openai:m", "--set", "openai:m.tools=true"), "named 'tools'; there are: base_url"),
        (("openai:m", "--legal-only"), "so that protocol = 'tools' has nothing to decide"),
    ],
)
@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_what_cannot_call_is_one_sentence_before_the_first_episode(textbench, more, said, dry):
    command = ("run", "--protocol", "tools", "--base-url", "http://127.0.0.1:9/v1", *LAKE, "--out", "r", "--agent")
    done = textbench(*command, *more, *dry)
    assert done.code == 2
    assert said in " ".join(done.err.split())
    assert not Path("r").exists()


def test_a_server_that_refuses_tools_says_the_fix(textbench):
    with OpenAIServer(refused={"tools": ""}) as server:
        command = ("--agent", "m=openai:m", "--base-url", server.base_url, "--protocol", "tools", *LAKE[:-1])
        done = textbench("run", *command, "--out", "r")
    assert done.code == 1
    assert "or ask a server that takes them: vLLM's by --enable-auto-tool-choice" in " ".join(done.err.split())


def test_a_call_is_kept_in_the_response_cache_by_its_tool(tmp_path):
    request = TurnRequest("where", legal_actions=("left", "right"))
    with OpenAIServer(calls=lambda request: [("act", {"action": "right"})]) as server:
        model = cached(OpenAIModel("m", base_url=server.base_url), ResponseCache(tmp_path / "c", sampled=True))
        policy = LanguageAgentPolicy(model, tools=True)
        turns = [policy.act([request])[0] for _ in range(2)]
        (other,) = LanguageAgentPolicy(model, PromptMap(), tools=True).act(
            [TurnRequest("where", legal_actions=("left", "right"), moves_listed=False, action_help="a side")]
        )
    assert [turn.response for turn in turns] == ["<action>right</action>"] * 2
    assert [turn.usage.cached for turn in turns] == [False, True]
    assert Tool((), "a side").function["parameters"]["properties"]["action"]["description"] == "a side"
    assert not other.usage.cached
