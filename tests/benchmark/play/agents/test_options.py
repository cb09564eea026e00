"""Options of single agents, from the command line and from a file: to the server, into the manifest, and back."""

import json
from pathlib import Path

import pytest

from benchmark import UsageError, evaluate
from benchmark.play.agents.options import read_sets, with_agent_options
from benchmark.play.options import RunOptions
from benchmark.runs.folder import RunFolder
from tests.agents.openai_server import OpenAIServer
from tests.benchmark.helpers import everything_written, refused

LAKE = ("--scenario", "frozen-lake", "--episodes", 2, "--quiet")


@pytest.mark.slow
def test_two_models_on_two_servers_with_different_settings(textbench, workplace, monkeypatch):
    monkeypatch.setenv("FIRST_KEY", "planted-first-key")
    monkeypatch.setenv("PLAIN", "planted-header-value")
    Path("mine.toml").write_text('opening = "Rules follow. $instructions"\n')
    sets = (
        "a.key_variable=FIRST_KEY",
        "a.temperature=0.1",
        "a.headers.X-Auth=Bearer $PLAIN",
        "a.headers.X-Title=my study",
        "a.extra_body.top_k=5",
        "a.send_seed=true",
        "b.v2.mode=direct",
        "b.v2.omit=stop,temperature",
        "b.v2.prompts=mine.toml",
        "b.v2.timeout=33",
    )
    with OpenAIServer() as first, OpenAIServer() as second:
        command = ["run", "--agent", "a=openai:m", "--agent", "b.v2=openai:m", *LAKE, "--out", "r"]
        for one in (f"a.base_url={first.base_url}", f"b.v2.base_url={second.base_url}", *sets):
            command += ["--set", one]
        done = textbench(*command)
        assert done.code == 0, done.err
        assert first.headers["authorization"] == "Bearer planted-first-key"
        assert (first.headers["x-auth"], first.headers["x-title"]) == ("Bearer planted-header-value", "my study")
        assert all((r["temperature"], r["top_k"], "seed" in r) == (0.1, 5, True) for r in first.requests)
        for request in second.requests:
            assert not {"temperature", "stop", "seed", "top_k"} & request.keys()
            assert request["messages"][0]["content"].startswith("Rules follow.")
        Path("mine.toml").unlink()
        written = everything_written(workplace)
        assert "planted" not in written + done.out
        manifest = RunFolder.open(Path("r")).manifest
        assert manifest["settings"]["agent_options"]["a"]["headers"] == {
            "X-Auth": "Bearer $PLAIN",
            "X-Title": "my study",
        }
        assert manifest["operation"]["agent_options"] == {"a": {"key_variable": "FIRST_KEY"}, "b.v2": {"timeout": 33.0}}
        assert [card["settings"]["temperature"] for card in manifest["agents"]] == [0.1, 0.5]
        assert [card["settings"]["mode"] for card in manifest["agents"]] == ["think", "direct"]

        before = len(second.requests)
        resumed = textbench("resume", "r", "--episodes", 3, "--set", "b.v2.timeout=44", "--quiet")
        assert resumed.code == 0, resumed.err
        assert second.requests[before]["messages"][0]["content"].startswith("Rules follow.")
        other = textbench("resume", "r", "--set", "a.temperature=0.3")
        refused(other, "agent_options, a, temperature = 0.1, now it is 0.3")


def test_the_same_in_a_file_and_from_python(textbench):
    with OpenAIServer() as server:
        Path("run.toml").write_text(
            f'episodes = 2\nscenarios = ["frozen-lake"]\n[agents.hot]\nspec = "openai:m"\ntemperature = 1.5\n'
            f'base_url = "{server.base_url}"\nextra_body = {{ top_k = 3 }}\n[agents.random]\n'
        )
        both = textbench("run", "--config", "run.toml", "--out", "both", "--quiet", "--json")
        assert [row["agent"] for row in json.loads(both.out)["scores"]] == ["hot", "random"]
        assert {(r["temperature"], r["top_k"]) for r in server.requests} == {(1.5, 3)}
        one = textbench("run", "--config", "run.toml", "--agent", "hot", "--set", "hot.extra_body.min_p=0.1", "--quiet")
        assert (one.code, server.requests[-1]["top_k"], server.requests[-1]["min_p"]) == (0, 3, 0.1)
        own = {"m": {"base_url": server.base_url, "temperature": 0.7}}
        evaluate({"m": "openai:m"}, scenarios="frozen-lake", episodes=2, agent_options=own, quiet=True)
        assert server.requests[-1]["temperature"] == 0.7


def test_wrong_options_are_named():
    for said, *sets in (
        ("--set takes NAME.option=value, where NAME is an agent of the run: m; got 'n.temp", "n.temperature=1"),
        ("the option temperature of the agent 'm' must be a number, got 'hot'", "m.temperature=hot"),
        ("the option route of the agent 'm' must be one of auto, chat, responses, completions, got", "m.route=chats"),
        ("a key isn't given itself; put it into an environment variable", "m.api_key=sk-123456789"),
        ("the header X-Token of the agent 'm' looks like a secret", "m.headers.X-Token=abc"),
        ("holds what looks like a key, and is kept in files", "m.extra_body.user=sk-0123456789"),
        ("extra_body of the agent 'm' must be a number, neither infinite nor NaN, got {", "m.extra_body.a=[1, -inf]"),
        ("headers is no table, it has a value already", "m.headers=1", "m.headers.x=1"),
    ):
        with pytest.raises(UsageError) as caught:
            with_agent_options(RunOptions(sets=tuple(sets)), {"m": "openai:x"})
        assert said in str(caught.value)
        assert "sk-123456789" not in str(caught.value)


def test_values_are_read_into_tables_of_agents():
    texts = ["a.b.x=1", "a.b.y=low", 'a.b.z=["p", "q"]', "a.b.t.u.v=null", "a.b.x=2", "a.w=1.5"]
    assert read_sets(texts, ["a", "a.b"]) == {
        "a.b": {"x": 2, "y": "low", "z": ["p", "q"], "t": {"u": {"v": None}}},
        "a": {"w": 1.5},
    }
