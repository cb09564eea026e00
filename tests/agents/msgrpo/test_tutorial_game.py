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
def test_the_exploitability_of_the_tutorials_game_falls(tmp_path: Path) -> None:
    for cell in CELLS:
        if (file := re.match(r"%%writefile (\S+)\n", cell)) is not None:
            (tmp_path / file[1]).write_text(cell[file.end() :])
    (command,) = [cell.removeprefix("!python ").split() for cell in CELLS if cell.startswith("!python ")]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "textbench run --agent hf:runs/duel/best --scenario my_duel:BluffTheDie-v0"
    lines = map(json.loads, (tmp_path / "runs/duel/metrics.jsonl").read_text().splitlines())
    found = [line["evaluation"]["exploitability"] for line in lines if "evaluation" in line]
    assert found[0] > 0.8
    assert min(found[1:]) < 0.5 * found[0]
    assert found[-1] < 0.5 * found[0]
