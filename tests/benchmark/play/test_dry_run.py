"""A dry run refuses what a run refuses, in the same words, as far as that is known without loading or asking."""

import json
import sys
from pathlib import Path

import pytest

LAKE = ("--scenario", "frozen-lake", "--episodes", "2")
SERVER = ("--base-url", "http://127.0.0.1:9/v1")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--agent", "gguf:/nope.gguf"), "no file '/nope.gguf'"),
        (("--agent", "gguf:notes.gguf"), "isn't in GGUF format"),
        (("--agent", "hf:./nope"), "no folder './nope'"),
        (("--agent", "hf:empty"), "empty has no config.json"),
        (("--agent", "hf:on-nothing"), "no folder './gone'"),
        (("--agent", "vllm:some/model"), "vllm:some/model needs vLLM, which isn't installed: pip install"),
        (("--agent", "openai:m", *SERVER, "--legal-only", "--mode", "direct"), "OpenAI's API takes no grammar"),
        (
            ("--agent", "openai:m", *SERVER, "--set", "openai:m.route=responses", "--prompts", "prefixed"),
            "can't continue the response prefix",
        ),
        (("--agent", "openai:m", "--base-url", "nonsense"), "nonsense"),
        (("--agent", "openai:m", *SERVER, "--max-cost", "1"), "--max-cost needs a price for 'openai:m'"),
        (("--agent", "hf:some/model", "--mode", "aloud"), "unknown mode 'aloud'"),
        (("--agent", "tiny", "--set", "tiny.device=tpu"), "device is auto, cpu, cuda, cuda:N or mps, got 'tpu'"),
        (("--agent", "hf:some/model", "--set", "hf:some/model.thinking_budget=9", "--legal-only"), "thinking_budget"),
        (("--agent", "random", "--agent", "openai:m", *SERVER, "--protocols", "legal-only,random"), "no grammar"),
        (("--agent", "nobody.py:Player"), "there is no file 'nobody.py'"),
    ],
)
def test_what_a_run_refuses_is_refused(textbench, arguments, said):
    Path("empty").mkdir()
    Path("on-nothing").mkdir()
    Path("on-nothing/adapter_config.json").write_text('{"base_model_name_or_path": "./gone"}')
    Path("notes.gguf").write_text("nothing")
    before = sorted(Path.cwd().iterdir())
    dry = textbench("run", *arguments, *LAKE, "--dry-run")
    assert dry.code == 2
    assert said in dry.err
    assert sorted(Path.cwd().iterdir()) == before
    run = textbench("run", *arguments, *LAKE)
    if "some/model" not in arguments[1] or "vllm" in arguments[1]:  # else the model would be looked for first
        assert (run.code, run.err) == (2, dry.err)


@pytest.mark.parametrize(("agent", "package"), [("smollm2", "gguf"), ("smollm2-lake", "peft"), ("tiny", "torch")])
def test_a_missing_package_is_said(textbench, monkeypatch, agent, package):
    monkeypatch.setitem(sys.modules, package, None)
    dry = textbench("run", "--agent", agent, *LAKE, "--dry-run")
    assert dry.code == 2
    assert f"{agent} needs {package}: pip install" in dry.err
    assert textbench("run", "--agent", agent, *LAKE).err == dry.err


@pytest.mark.slow
def test_a_run_that_grows_is_estimated_by_what_each_agent_is_asked_with(textbench, monkeypatch):
    """Its own prompts, its history and its reasoning count as they do where the episodes are planned."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    named = [f"{name}=openai:m" for name in ("plain", "brief", "thinks")]
    own = ("brief.mode=direct", "brief.max_tokens=16", "thinks.history=4", "thinks.reasoning_tokens=1000")
    words = [*(w for n in named for w in ("--agent", n)), *(w for one in own for w in ("--set", one))]
    lake = ("--scenario", "frozen-lake", "--until", "0.2", "--episodes", "500", "--dry-run", "--json")
    rows = {row["agent"]: row for row in json.loads(textbench("run", *words, *SERVER, *lake).out)["estimates"]}
    assert rows["brief"]["prompt_tokens"] < rows["plain"]["prompt_tokens"] < rows["thinks"]["prompt_tokens"]
    each = {name: row["completion_tokens_at_most"] for name, row in rows.items()}
    assert each["brief"] * 256 == each["plain"] * 16
    assert each["thinks"] * 256 == each["plain"] * 1256


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


PRICES = '[prices."cheap"]\ninput = 1.0\noutput = 2.0\n[prices."dear"]\ninput = 10.0\noutput = 20.0\n'


@pytest.mark.parametrize("until", [(), ("--until", "0.3")])
def test_dollars_and_hours_of_all_agents_are_added_up(textbench, monkeypatch, until):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    Path("prices.toml").write_text(PRICES)
    agents = ("--agent", "cheap=openai:m", "--agent", "dear=openai:m", "--agent", "random")
    command = ("run", *agents, *SERVER, "--scenario", "frozen-lake", "--prices", "prices.toml", "--dry-run", *until)
    total = json.loads(textbench(*command, "--json").out)["total"]
    (alone,) = [
        json.loads(textbench("run", "--agent", one, *command[7:], "--json").out)["total"] for one in agents[1:2]
    ]
    assert total["cost"] == [pytest.approx(11 * end) for end in alone["cost"]]
    assert total["hours"][1] == pytest.approx(2 * alone["hours"][1])
    assert total["hours"][1] > 0
    told = " ".join(textbench(*command).out.split())
    assert f"all agents together: {total['cost'][0]:.2f} to {total['cost'][1]:.2f} USD" in told
    assert "hours" in told
