"""Evaluating from Python: the same run as at the command line, with objects for agents and exceptions for errors."""

import asyncio
import gc
import importlib
import json
import linecache
import math
import os
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import gymnasium as gym
import pytest

import benchmark
from agents import LanguageAgentPolicy, ScriptedModel, Turn, load_agent
from benchmark.runs.folder import RunFolder
from tests.agents.openai_server import OpenAIServer
from tests.benchmark.helpers import counted, refused
from textgames import SCENARIOS

LAKE = {"scenarios": "frozen-lake", "quiet": True}


class Always:
    """A policy of somebody's own."""

    name = "always"

    def __init__(self, action: str, fails_at: int | None = None, error: BaseException | None = None) -> None:
        self.settings = {"action": action}
        self.asked, self.fails_at, self.error = 0, fails_at, error

    def act(self, requests: Sequence) -> list[Turn]:
        self.asked += len(requests)
        if self.fails_at is not None and self.asked > self.fails_at:
            raise self.error
        return [Turn(response=self.settings["action"]) for _ in requests]


def without_settings() -> Always:
    agent = Always("down")
    agent.settings = None
    return agent


def test_a_run_is_that_of_the_command_line(textbench, capsys):
    command = ("run", "--agent", "random", "--agent", "greedy", "--scenario", "frozen-lake", "--episodes", 3)
    assert textbench(*command, "--out", "command", "--quiet").code == 0
    results = benchmark.evaluate(["random", "greedy"], episodes=3, out="python", **LAKE)
    assert counted("python") == counted("command")
    assert results.folders == (Path("python").absolute(),)
    assert (results.complete, results.stopped, results.unscored) == (True, None, 0)
    manifests = [RunFolder.open(Path(name)).manifest for name in ("command", "python")]
    for name in ("settings", "agents", "scenarios", "matchups", "packages"):
        assert manifests[0][name] == manifests[1][name]
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")
    for show in (["leaderboard", "python"], ["compare", "random", "greedy", "--in", "python"]):
        shown = json.loads(textbench(*show, "--json").out)
        made = results.leaderboard() if show[0] == "leaderboard" else results.compare("random", "greedy")
        assert shown == json.loads(json.dumps(made.document))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"episodes": 0}, "episodes must be a whole number from 1 to 10,000,000, got 0"),
        ({"seed": 1}, "no option of a run named 'seed'; did you mean 'seed_offset'"),
        ({"scenarios": []}, "scenarios is empty; leave it out to play the paper's four"),
        ({"suite": "strategy", "suites": "paper"}, "suite and suites are one option"),
        ({"agents": [without_settings()]}, "settings are plain data by name, a dictionary, got None"),
        ({"agents": {"a/b": "random"}}, "an agent's name is made of letters, digits and any of"),
        ({"agents": []}, "agents is an empty list; name at least one"),
        ({"agents": [Always]}, "got the class Always, which is to be called"),
        ({"agents": {"a": {"temperature": 1}}}, "an agent is a spec .* got {'temperature': 1}"),
        ({"agent_options": 3}, "agent_options are {agent: {option: value}}, got 3"),
        ({"scenarios": gym.make("TextSnake-v0")}, "scenarios must be a text, got <"),
        ({"scenarios": SCENARIOS["snake"]._replace(horizon=3)}, "'snake' has been changed"),
        ({"agents": {"a": {"spec": "random", "tmp": 1}}}, "no option of the agent 'a' \\(random\\) named 'tmp'"),
    ],
)
def test_what_is_wrong_is_said_as_at_the_command_line(workplace, options, message):
    with pytest.raises(benchmark.UsageError, match=message):
        benchmark.evaluate(**{"agents": "random", "quiet": True, **options})
    assert not list(workplace.iterdir())


def test_policies_and_specs_mix(workplace):
    scripted = LanguageAgentPolicy(ScriptedModel(["<action>down</action>"] * 40), name="says down")
    agents = {"mine": Always("right"), "base": "random", "scripted": scripted}
    agents["mine"].settings |= {"patience": math.inf, "moves": {"up", "down", "left", "right"}}
    results = benchmark.evaluate(agents, episodes=2, out="r", **LAKE)
    assert results.agents == ("mine", "base", "scripted")
    cards = {card["name"]: card for card in RunFolder.open(Path("r")).manifest["agents"]}
    assert cards["mine"]["spec"].endswith(".Always")
    settings = cards["mine"]["settings"]
    assert (settings["action"], settings["patience"], [*settings["code"]]) == ("right", "inf", ["Always"])
    assert settings["moves"] == ["down", "left", "right", "up"]  # whatever order a process has
    assert cards["scripted"]["spec"] == "python:agents.policy.LanguageAgentPolicy"
    assert "code" not in cards["scripted"]["settings"]
    assert benchmark.evaluate([load_agent("greedy"), "random"], episodes=1, **LAKE).agents == ("greedy", "random")


def test_a_policy_that_is_somebody_else_is_noticed(workplace, textbench):
    call = {"episodes": 2, "out": "r", **LAKE}
    benchmark.evaluate({"mine": Always("right")}, **call)
    with pytest.raises(benchmark.UsageError, match="settings of agent mine, action = 'right', now it is 'down'"):
        benchmark.evaluate({"mine": Always("down")}, **call)
    done = textbench("resume", "r")
    refused(done, "Always is an object of a Python program, which has to go on itself: benchmark.evaluate")
    assert textbench("leaderboard", "r").code == 0


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError("my own mistake"), "my own mistake"),
        (KeyboardInterrupt(), r"of 9 episodes are kept in .*read_results.*goes on"),
    ],
    ids=["an error of its own", "Ctrl-C"],
)
def test_what_stops_a_run_is_raised_and_the_rest_is_kept(workplace, error, said):
    stopped, call = Always("right", fails_at=8, error=error), {"episodes": 9, "max_concurrency": 1, **LAKE}
    with pytest.raises(type(error), match=said) as caught:
        benchmark.evaluate({"mine": stopped}, **call, **({"out": "r"} if isinstance(error, RuntimeError) else {}))
    folder = str(caught.value).partition("out='")[2].partition("'")[0] or "r"
    assert 0 < benchmark.read_results(folder).columns.played < 9
    stopped.fails_at = None
    assert benchmark.evaluate({"mine": stopped}, out=folder, **call).complete


def test_who_mends_a_player_goes_on_unless_another_version_of_it_has_played(workplace, monkeypatch):
    monkeypatch.syspath_prepend(str(workplace))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # or the file of a moment ago would be imported again

    def version(body):
        Path("mine.py").write_text(
            "from agents import Turn\n\n\nclass Mine:\n    name = 'mine'\n\n"
            f"    def act(self, requests):\n        {body}\n"
        )
        monkeypatch.delitem(sys.modules, "mine", raising=False)
        linecache.clearcache()
        return importlib.import_module("mine").Mine()

    with pytest.raises(ZeroDivisionError):
        benchmark.evaluate(version("return 1 / 0"), episodes=2, out="r", **LAKE)
    mended = version("return [Turn('down') for _ in requests]")
    assert benchmark.evaluate(mended, episodes=2, out="r", **LAKE).complete
    said = "r has episodes of the agent mine, whose class Mine has another source now; play it into another folder"
    with pytest.raises(benchmark.UsageError, match=said):
        benchmark.evaluate(version("return [Turn('up') for _ in requests]"), episodes=2, out="r", **LAKE)
    monkeypatch.delitem(sys.modules, "mine")


@pytest.mark.slow
def test_without_out_the_folder_goes_with_the_results(workplace):
    results = benchmark.evaluate("random", episodes=2, **LAKE)
    (folder,) = results.folders
    assert (folder / "manifest.json").exists()
    assert not list(workplace.iterdir())
    del results
    gc.collect()
    assert not folder.exists()


def test_it_works_where_an_event_loop_runs(workplace):
    """As in a notebook, where every cell is run by one; with agents of this process and behind a server."""

    async def cell(url: str) -> benchmark.Results:
        agents = {"here": "random", "served": load_agent("openai:m", base_url=url, api_key="not-a-real-key")}
        return benchmark.evaluate(agents, episodes=2, **LAKE)

    with OpenAIServer() as server:
        results = asyncio.run(cell(server.base_url))
        served = load_agent("openai:m", base_url=server.base_url, api_key="not-a-real-key")
        with pytest.raises(benchmark.UsageError, match="--max-cost needs a price for 'served'"):
            benchmark.evaluate({"served": served}, episodes=2, max_cost=1, **LAKE)
    assert results.complete
    assert set(results.agents) == {"here", "served"}


def test_it_works_in_another_thread(workplace):
    """And a scenario may be given as it is, in whatever can be iterated."""
    found: list[benchmark.Results] = []
    call = {"scenarios": iter([SCENARIOS["snake"]]), "episodes": 2, "quiet": True}
    thread = threading.Thread(target=lambda: found.append(benchmark.evaluate("random", **call)))
    thread.start()
    thread.join()
    assert (found[0].complete, found[0].scenarios) == (True, ("snake",))


def test_a_limit_is_told_and_no_error(workplace, capsys):
    results = benchmark.evaluate("random", episodes=2000, scenarios="snake", run_timeout=0.01, out="r")
    assert not results.complete
    assert results.stopped == "the run's time is up (--run-timeout 0.01)"
    assert "stopped: the run's time is up" in repr(results)
    said = capsys.readouterr()
    assert said.out == ""
    assert "the run's time is up (--run-timeout 0.01);" in said.err


PAGE = Path(__file__).parents[2] / "docs/tutorials/evaluate.md"
CELLS = re.findall(r"^```\{code-cell\} ipython3\n(?!%%)(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_page_runs(tmp_path, reference_cache):
    pytest.importorskip("pandas", reason="pandas isn't installed (extra pandas)")
    assert len(CELLS) == 6
    program = tmp_path / "page.py"  # a file, as the identity of a class in it is its source
    shown = [
        re.sub(r"^(?![ ]|.* = |import|from|class)(\S.*)\Z", r"print(\1)", cell.rstrip(), flags=re.M) for cell in CELLS
    ]
    program.write_text("\n".join(shown))
    environment = {**os.environ, "TEXTBENCH_CACHE_DIR": str(reference_cache), "PYTHONPATH": str(PAGE.parents[2])}
    done = subprocess.run(
        [sys.executable, "-W", "error", program], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert "A = tiny, B = planner" in done.stdout
    assert "mean_return_low" in done.stdout
    assert (tmp_path / "runs/notebook/manifest.json").exists()
