"""The training that docs/tutorials/add-a-game.md ends with, as written there, and what follows it.

All in processes of their own: the game's module lies in the working directory, and nothing has imported it before.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/tutorials/add-a-game.md").read_text()
CELLS = re.findall(r"^```\{code-cell\} ipython3\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_return_in_the_tutorials_game_rises(tmp_path):
    for cell in CELLS:
        if (file := re.match(r"%%writefile (\S+)\n", cell)) is not None:
            (tmp_path / file[1]).write_text(cell[file.end() :])
    (command,) = [cell.removeprefix("!python ").split() for cell in CELLS if cell.startswith("!python ")]

    def run(*command: str) -> "subprocess.CompletedProcess[str]":
        environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        done = subprocess.run([sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done

    printed = run(*command).stdout.strip()
    assert printed == "textbench run --agent hf:runs/dice/best --scenario my_solved_games:SolvedDice-v0"
    lines = map(json.loads, (tmp_path / "runs/dice/metrics.jsonl").read_text().splitlines())
    first, *_, last = [line["evaluation"] for line in lines if "evaluation" in line]
    assert first["high"] < 7.0  # random legal actions; two dice show 7 on average
    assert last["low"] > 7.5  # optimal play gets 9.24
    resumed = run("-m", "agents.msgrpo", "--resume", "runs/dice", "--quiet").stdout.strip()
    assert resumed.endswith("/runs/dice/best --scenario my_solved_games:SolvedDice-v0")
    ended = run("-m", "benchmark.cli", *shlex.split(printed)[1:], "--episodes", "2", "--out", "play")
    assert "textbench replay play --import my_solved_games" in ended.stderr
