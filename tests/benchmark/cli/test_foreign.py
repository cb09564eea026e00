"""OpenAI's agents SDK has the import name of our package: every command and every name of ours says so."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmark import foreign
from tests.benchmark.helpers import ROOT

SAID = "OpenAI's agents SDK (openai-agents) has the same import name; give textbench an environment of its own"


@pytest.mark.parametrize(
    ("command", "over"),
    [
        ("run", False),
        ("train --help", True),
        *(pytest.param(command, True, marks=pytest.mark.slow) for command in ("list scenarios", "serve snake")),
    ],
)
def test_every_command_says_it_and_ends_with_2(tmp_path, command, over):
    package = overwritten(tmp_path, over)
    program = f"import sys; from benchmark.cli import main; sys.exit(main({command.split()!r}))"
    done = run_beside(tmp_path, program)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(f"textbench: textbench's package 'agents' is another one here, in {package}: {SAID}")
    assert (done.stderr.count("\n"), done.stdout) == (1, "")


@pytest.mark.parametrize("name", ["benchmark; benchmark.evaluate", "textbench.agents"])
def test_the_names_of_the_package_say_it(tmp_path, name):
    overwritten(tmp_path, over=True)
    done = run_beside(tmp_path, f"import textgames, {name}")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ImportError: textbench's package 'agents' is another one here")
    assert SAID in done.stderr


def overwritten(folder: Path, over: bool) -> Path:
    """A folder of packages in which ``agents`` is another one, installed over ours or alone."""
    for name in ("benchmark", "textgames", "textbench"):
        (folder / name).symlink_to(ROOT / name)
    package = folder / "agents"
    package.mkdir()
    (package / "__init__.py").write_text("class Agent: ...\n")
    if over:
        (package / "turn.py").write_text("")
    return package


PLAY = "from benchmark.cli import main; assert main('run --agent random --episodes 1 --quiet'.split()) == 0"
ALIAS = """
import textbench.agents, textbench.agents.loop.session, agents.loop.session
from textbench.agents import load_agent
assert textbench.agents is agents and textbench.agents.loop.session is agents.loop.session
assert agents.loop.session.__spec__.name == "agents.loop.session"
import runpy, sys
sys.argv[1:] = ["--print-config"]
try:
    runpy.run_module("textbench.agents.msgrpo", run_name="__main__", alter_sys=True)
except SystemExit as stop:
    assert stop.code == 0
"""


@pytest.mark.parametrize("program", [pytest.param(PLAY, marks=pytest.mark.slow), ALIAS], ids=["run", "alias"])
def test_one_that_lies_elsewhere_is_passed_over(tmp_path, program):
    """As in a clone that is installed with ``-e`` in the SDK's environment."""
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents/__init__.py").write_text("class Agent: ...\n")
    done = run_beside(tmp_path, program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run_beside(tmp_path, f"import agents\n{program}")
    assert "has been imported from" in done.stderr
    assert "import textbench.agents in a process that doesn't import the other" in done.stderr


def test_ours_is_ours_and_a_mix_is_warned_of(monkeypatch, textbench):
    assert foreign.foreign_agents() is None
    assert foreign.overwritten_sdk() is None
    for folder, warned in ((ROOT.parent, False), (ROOT, True)):
        sdk = SimpleNamespace(version="0.24.0", locate_file=folder.joinpath)
        monkeypatch.setattr("importlib.metadata.distribution", lambda name, sdk=sdk: sdk)
        assert (foreign.overwritten_sdk() is not None) == warned
    done = textbench("doctor")
    assert done.code == 0
    assert "openai-agents 0.24.0 has the import name 'agents', too" in " ".join(done.out.split())
    with pytest.raises(ImportError, match="Runner is a name of openai-agents, and this package"):
        from agents import Runner  # noqa: F401
    monkeypatch.setattr(foreign, "find_spec", lambda name: None)  # only the folder is left
    monkeypatch.setattr(foreign, "_is_ours", lambda folder: False)
    assert "textbench's package 'agents' is missing here" in foreign.foreign_agents()


def run_beside(folder, program, cwd="/"):
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-P", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=cwd, timeout=60)
