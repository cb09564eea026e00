"""The page on methods of credit has them all, and a file with a method of one's own runs as the tutorial says it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from agents.msgrpo.configuration.config import presets
from agents.msgrpo.configuration.settings import POINTS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/research/credit/methods.md").read_text()
TUTORIAL = (ROOT / "docs/research/credit/add-a-method.md").read_text()
(FILE,) = re.findall(r"^%%writefile my_credit.py\n(.*?)^```$", TUTORIAL, re.MULTILINE | re.DOTALL)
(CONFIG,) = re.findall(r"^```toml\n(.*?)^```$", TUTORIAL, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_a_run_with_a_method_of_ones_own(tmp_path):
    (tmp_path / "my_credit.py").write_text(FILE)
    (tmp_path / "mine.toml").write_text(CONFIG)
    program = ["-W", "error::UserWarning", "-m", "agents.msgrpo"]
    program += ["--config", "mine.toml", "--set", "out=run", "--quiet"]
    done = subprocess.run([sys.executable, *program], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run/last/config.json").exists()
    assert 'credit = "my_credit:FromTheEnd"' in (tmp_path / "run/last/msgrpo.toml").read_text()


@pytest.mark.parametrize("point", POINTS)
def test_the_page_has_every_method(point):
    named = set(re.findall(r"`([\w]+)`", PAGE))
    assert set(POINTS[point].names) - named == set()


def test_the_page_has_every_preset():
    section = PAGE[PAGE.index("## Presets") : PAGE.index("## A method of your own")]
    assert set(presets()) - set(re.findall(r"`([\w]+)`", section)) == set()
