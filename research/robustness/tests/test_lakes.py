"""The card of published results on Frozen Lake."""

import json
import tomllib
from pathlib import Path

import pytest
from pydantic import ValidationError

from research.robustness.lakes.__main__ import BEGIN, END, main, table
from research.robustness.lakes.card import FILE, Card, Setting, episodes_to_tell, measure

PAGE, VALUES = (Path(__file__).parents[3] / "docs" / "research" / name for name in ("lakes.md", "lakes.json"))


@pytest.fixture(scope="module")
def card():
    return Card.model_validate(tomllib.loads(FILE.read_text(encoding="utf-8")))


def test_the_page_is_made_of_the_files(card):
    page = PAGE.read_text(encoding="utf-8")
    assert page.split(BEGIN)[1].split(END)[0].split("\n\n", 1)[1].strip().splitlines() == table(
        card, json.loads(VALUES.read_text(encoding="utf-8"))
    )


def test_a_few_maps_agree_with_the_stored_values(card):
    stored = json.loads(VALUES.read_text(encoding="utf-8"))
    for name, own in measure(card, maps=12).items():
        for which in ("blind", "optimum"):
            assert own[which]["low"] - 0.05 <= stored[name][which]["value"] <= own[which]["high"] + 0.05


@pytest.mark.parametrize(
    ("steps", "success", "optimum", "blind"),
    [
        (2, 1.0, 1.0, 0.5),  # right then down, or down then right: half of blind play's four pairs
        (1, 1.0, 0.0, 0.0),
        # the first move leaves the corner with 3/4; the second one goes right or down with 1/2 if it is meant to, and
        # with 3/8 if both are meant as often
        (2, 0.5, 0.375, 0.28125),
    ],
)
def test_values_of_two_by_two_by_hand(steps, success, optimum, blind):
    setting = Setting(size=2, ice=1.0, starts="corner", steps=steps, success=success, source="")
    best, fixed = setting.values(maps=1)
    assert best[0] == pytest.approx(optimum)
    assert fixed[0] == pytest.approx(blind)


def test_episodes_that_two_rates_take():
    assert episodes_to_tell(0.5, 0.4) == 385  # (0.25 + 0.24) (0.842 + 1.960)^2 / 0.01
    assert episodes_to_tell(0.3, 0.3) is None


def test_a_setting_says_what_it_takes():
    with pytest.raises(ValidationError, match="corner"):
        Setting(size=4, ice=0.8, starts="middle", steps=8, success=1, source="")


def test_a_page_without_a_table_or_a_file_that_cannot_be_written_is_refused(monkeypatch, capsys, tmp_path):
    (tmp_path / "page.md").write_text("No table\n")
    for values, page, why in (("a.json", "page.md", "needs the lines"), ("no/a.json", "page.md", "No such file")):
        monkeypatch.setattr("sys.argv", ["lakes", str(tmp_path / values), str(tmp_path / page)])
        with pytest.raises(SystemExit, match="2"):
            main()
        assert why in capsys.readouterr().err
