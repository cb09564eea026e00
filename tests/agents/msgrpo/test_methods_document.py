"""The page on methods of credit: it has them all, and what it says about a method of one's own runs as it stands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from agents.msgrpo.configuration.fields import POINTS
from agents.msgrpo.configuration.presets import preset_names

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/credit/methods.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
FILE = next(code for language, code in BLOCKS if code.startswith("# my_credit.py"))
PROGRAMS = [code for language, code in BLOCKS if language == "python" and code != FILE]
(CONFIG,) = [code for language, code in BLOCKS if language == "toml"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "my_credit.py").write_text(FILE)
    return tmp_path


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", *arguments], capture_output=True, text=True, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_method_of_ones_own_is_short() -> None:
    code = [line for line in FILE.splitlines() if line.strip() and not line.startswith("#")]
    assert len(code) <= 20


@pytest.mark.slow
@pytest.mark.parametrize("code", PROGRAMS, ids=lambda code: code.splitlines()[0])
def test_programs(code: str, folder: Path) -> None:
    check = "\nfrom agents.msgrpo.credit import METHODS\ntables = config.method_settings.get('credit', {})"
    made = run(folder, "-c", f"{code}{check}\nprint(METHODS.make(config.credit, tables.get(config.credit)))")
    assert made.startswith(("Late(growth=2.0)", "Compared("))


@pytest.mark.slow
def test_a_run_with_a_method_of_ones_own(folder: Path) -> None:
    (folder / "mine.toml").write_text(CONFIG)
    run(folder, "-m", "agents.msgrpo", "--config", "mine.toml", "--set", "out=run", "--quiet")
    assert (folder / "run/last/config.json").exists()
    assert 'credit = "my_credit:Late"' in (folder / "run/last/msgrpo.toml").read_text()


@pytest.mark.parametrize("point", POINTS)
def test_the_page_has_every_method(point: str) -> None:
    named = set(re.findall(r"`([\w]+)`", PAGE))
    assert set(POINTS[point].names) - named == set()


def test_the_page_has_every_preset() -> None:
    section = PAGE[PAGE.index("## Presets") : PAGE.index("## A method of your own")]
    assert set(preset_names()) - set(re.findall(r"`([\w]+)`", section)) == set()
