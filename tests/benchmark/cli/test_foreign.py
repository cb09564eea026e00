"""OpenAI's agents SDK has the import name of our package: every command and every name of ours says so."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmark import foreign

ROOT = Path(__file__).parents[3]
SAID = "OpenAI's agents SDK (openai-agents) has the same import name; give textbench an environment of its own"


SLOW = pytest.mark.slow  # each is a process


@pytest.mark.parametrize(
    ("command", "over"),
    [
        ("run", False),
        ("run", True),
        ("list scenarios", False),
        ("train --help", True),
        *(
            pytest.param(command, False, marks=SLOW)
            for command in ("doctor", "resume x", "serve snake", "train --help")
        ),
        *(
            pytest.param(command, True, marks=SLOW)
            for command in ("doctor", "list scenarios", "resume x", "serve snake")
        ),
    ],
)
def test_every_command_says_it_and_ends_with_2(tmp_path, command, over):
    package = tmp_path / "agents"
    package.mkdir()
    (package / "__init__.py").write_text("class Agent: ...\n")
    if over:  # installed after us
        (package / "turn.py").write_text("")
    program = f"import sys; from benchmark.cli import main; sys.exit(main({command.split()!r}))"
    done = run_beside(tmp_path, program)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(f"textbench: textbench's package 'agents' is another one here, in {package}: {SAID}")
    assert (done.stderr.count("\n"), done.stdout) == (1, "")


def test_the_names_of_the_package_say_it(tmp_path):
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents/__init__.py").write_text("class Agent: ...\n")
    done = run_beside(tmp_path, "import textgames, benchmark; benchmark.evaluate")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ImportError: textbench's package 'agents' is another one here")
    assert SAID in done.stderr


def test_ours_is_ours_and_a_mix_is_warned_of(monkeypatch, textbench):
    assert foreign.foreign_agents() is None
    assert foreign.overwritten_sdk() is None
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.24.0")
    done = textbench("doctor")
    assert done.code == 0
    assert "openai-agents 0.24.0 has the import name 'agents', too" in " ".join(done.out.split())


def test_a_package_of_which_only_the_folder_is_left(monkeypatch):
    monkeypatch.setattr(foreign, "find_spec", lambda name: None)
    assert "textbench's package 'agents' is missing here" in foreign.foreign_agents()


def run_beside(folder, program):
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-P", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd="/", timeout=60)
