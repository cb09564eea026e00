"""The training that docs/tutorials/add-a-game.md ends with, as written there."""

import json
import os
import re
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
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "textbench run --agent hf:runs/dice/best --scenario my_solved_games:SolvedDice-v0"
    lines = map(json.loads, (tmp_path / "runs/dice/metrics.jsonl").read_text().splitlines())
    first, *_, last = [line["evaluation"] for line in lines if "evaluation" in line]
    assert first["high"] < 7.0  # random legal actions; two dice show 7 on average
    assert last["low"] > 7.5  # optimal play gets 9.24
