"""The base installation has no torch: a run plays who needs none, and says what adds the others."""

import subprocess
import sys

import pytest

from agents.models.embedded import PROVIDER
from textgames.extras import CPU_TORCH

PROGRAM = """
import sys
for name in ("torch", "transformers", "tokenizers", "safetensors"):
    sys.modules[name] = None  # as if it weren't installed
from benchmark.cli import main
sys.exit(main(sys.argv[1:]))
"""


def without_torch(workplace, *arguments):
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=workplace, timeout=60)


@pytest.mark.slow
def test_a_run_plays_who_needs_no_torch(workplace):
    done = without_torch(workplace, "run", "--scenario", "frozen-lake", "--episodes", "2", "--out", "r")
    assert done.returncode == 0, done.stderr
    said = done.stderr.splitlines()[0]
    assert said.startswith("without the embedded models, which need torch, transformers")
    assert "pip install" in said
    assert said.endswith(CPU_TORCH)
    assert "Traceback" not in done.stderr
    assert all(name in done.stdout for name in ("random", "greedy", "planner"))
    assert "tiny" not in done.stdout


@pytest.mark.slow
def test_the_doctor_says_it_too(workplace):
    done = without_torch(workplace, "doctor")
    said = " ".join(done.stdout.split())
    assert done.returncode == 0, done.stderr
    assert "no torch without the embedded models" in said
    assert CPU_TORCH.partition(" ")[2] in said


@pytest.mark.slow
def test_nothing_is_said_where_agents_are_named_or_torch_is_there(workplace, textbench):
    named = without_torch(workplace, "run", "--agent", "random", "--episodes", "2", "--scenario", "snake", "--dry-run")
    assert (named.returncode, named.stderr) == (0, "")
    assert PROVIDER.missing() is None
    assert "without the embedded models" not in textbench("run", "--dry-run").err
