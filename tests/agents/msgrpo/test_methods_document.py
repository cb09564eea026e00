"""The page on methods of credit has them all, and a file with a method of one's own runs as the tutorial says it."""

import re
from pathlib import Path

import pytest

from agents.msgrpo.__main__ import main
from agents.msgrpo.configuration.config import presets
from agents.msgrpo.configuration.settings import POINTS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/research/credit/methods.md").read_text()
TUTORIAL = (ROOT / "docs/research/credit/add-a-method.md").read_text()
(FILE,) = re.findall(r"^%%writefile my_credit.py\n(.*?)^```$", TUTORIAL, re.MULTILINE | re.DOTALL)
(CONFIG,) = re.findall(r"^```toml\n(.*?)^```$", TUTORIAL, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
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
