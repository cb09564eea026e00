"""Documents: the page on methods of credit has them all, and what tutorials write runs as they say."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from agents.msgrpo import POINTS, main
from agents.msgrpo.configuration.config import presets
from benchmark import cli

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/research/credit/methods.md").read_text()
TUTORIAL = (ROOT / "docs/research/credit/add-a-method.md").read_text()
(FILE,) = re.findall(r"^%%writefile my_credit.py\n(.*?)^```$", TUTORIAL, re.MULTILINE | re.DOTALL)
(CONFIG,) = re.findall(r"^```toml\n(.*?)^```$", TUTORIAL, re.MULTILINE | re.DOTALL)


def test_a_run_with_a_method_of_ones_own(tmp_path, monkeypatch):
    (tmp_path / "my_credit.py").write_text(FILE)
    (tmp_path / "mine.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # as python -m has it
    assert main(["--config", "mine.toml", "--set", "out=run", "--quiet"]) == 0
    assert (tmp_path / "run/last/config.json").exists()
    assert 'credit = "my_credit:FromTheEnd"' in (tmp_path / "run/last/msgrpo.toml").read_text()


@pytest.mark.parametrize("point", POINTS)
def test_the_page_has_every_method(point):
    named = set(re.findall(r"`([\w]+)`", PAGE))
    assert set(POINTS[point].names) - named == set()


def test_the_page_has_every_preset():
    section = PAGE[PAGE.index("## Presets") : PAGE.index("## A method of your own")]
    assert set(presets()) - set(re.findall(r"`([\w]+)`", section)) == set()


ROOT = Path(__file__).parents[3]
ADD_A_GAME = (ROOT / "docs/tutorials/add-a-game.md").read_text()
CELLS = re.findall(r"^```\{code-cell\} ipython3\n(.*?)^```$", ADD_A_GAME, re.MULTILINE | re.DOTALL)


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
