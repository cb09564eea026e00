"""The training that docs/tutorials/add-a-game.md ends with, as written there, and what follows it.

The training is a process of its own: the game's module lies in the working directory, and nothing has imported it.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from agents.msgrpo.__main__ import main
from benchmark import cli

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/tutorials/add-a-game.md").read_text()
CELLS = re.findall(r"^```\{code-cell\} ipython3\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_return_in_the_tutorials_game_rises(tmp_path, monkeypatch, capsys):
    for cell in CELLS:
        if (file := re.match(r"%%writefile (\S+)\n", cell)) is not None:
            (tmp_path / file[1]).write_text(cell[file.end() :])
    (command,) = [cell.removeprefix("!python ").split() for cell in CELLS if cell.startswith("!python ")]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.strip()
    assert printed == "textbench run --agent hf:runs/dice/best --scenario my_solved_games:SolvedDice-v0"
    lines = map(json.loads, (tmp_path / "runs/dice/metrics.jsonl").read_text().splitlines())
    first, *_, last = [line["evaluation"] for line in lines if "evaluation" in line]
    assert first["high"] < 7.0  # random legal actions; two dice show 7 on average
    assert last["low"] > 7.5  # optimal play gets 9.24
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["--resume", "runs/dice", "--quiet"]) == 0
    assert capsys.readouterr().out.strip().endswith("/runs/dice/best --scenario my_solved_games:SolvedDice-v0")
    assert cli.main([*shlex.split(printed)[1:], "--episodes", "2", "--out", "play"]) == 0
    assert "textbench replay play --import my_solved_games" in capsys.readouterr().err
    del sys.modules["my_solved_games"]
