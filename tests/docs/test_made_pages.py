"""What of the documentation is made from the code is what the code makes: python docs/tools/make_pages.py renews it."""

import json
import re
import tomllib
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree

import gymnasium as gym
import pytest
from make_pages import stale
from pages import gallery, games, prompt, speeds
from pages.marks import marked, names_in, put, remade
from pages.pictures.animation import WIDTH
from pages.pictures.playing import good_and_bad
from pages.pictures.training import training_picture
from pages.scores import measured

from textgames import SCENARIOS, InvalidAction

ROOT = Path(__file__).parents[2]
PAGES = {page.name: page for page in games.pages()}
QUICK = ("frozen-lake", "kuhn-poker", "sokoban", "werewolf")  # whose play takes next to no time


def test_every_scenario_has_a_page_with_its_made_parts():
    assert sorted(name for page in PAGES.values() for name in page.scenarios) == sorted(SCENARIOS)
    for page in PAGES.values():
        parts = names_in(page.file.read_text())
        assert {"picture", "observation", *["scenarios", "scores"] * bool(page.scenarios)} <= set(parts), page.name
        assert parts == sorted(set(parts), key=list(games.PARTS).index), page.name


@pytest.mark.parametrize("name", QUICK)
def test_a_page_is_as_its_game_makes_it(name):
    page = PAGES[name]
    assert page.file.read_text() == page.made()
    for file, drawing in games.drawings(page).items():
        assert (games.PICTURES / file).read_text() == drawing


@pytest.mark.parametrize("page", PAGES.values(), ids=lambda page: page.name)
def test_tables_are_not_stale(page):
    text = page.file.read_text()
    for part in {"settings", "scenarios", "scores"} & set(names_in(text)):
        assert put(text, part, games.PARTS[part](page)) == text


@pytest.mark.parametrize("page", PAGES.values(), ids=lambda page: page.name)
def test_the_settings_of_environments_are_what_gymnasium_takes(page):
    told = dict(re.findall(r"`(\w+)=([^`]+)`", games.environment_part(page)))
    assert put(page.file.read_text(), "environment", games.environment_part(page)) == page.file.read_text()
    modes = re.findall(r"\w+", told["invalid_action"])
    wrong = {("invalid_action", mode) for mode in set(get_args(InvalidAction)) - set(modes)}
    right = {("invalid_action", mode) for mode in modes}
    most = int(told.get("level", "0..0").removeprefix("0.."))
    right |= {("level", most), ("max_steps", tomllib.loads(f"v = {told['max_steps'].replace('None', '50')}")["v"])}
    wrong |= {("level", most + 1)}
    (right if "twin" in told else wrong).add(("twin", 7))
    for name, value in right:
        gym.make(page.env_id, **{name: value}).reset(seed=0)
    for name, value in wrong:
        with pytest.raises(ValueError, match=r"levels|level|twins|vocabulary|invalid_action"):
            gym.make(page.env_id, **{name: value})


@pytest.mark.slow
def test_nothing_is_stale():
    assert [file for file, _ in stale()] == []


def test_the_gallery_has_every_scenario_once():
    ((file, text),) = gallery.files()
    assert file.read_text() == text
    for name in SCENARIOS:
        assert text.count(f"[{name}](games/") == 1
    for link in re.findall(r"\]\((games/[^)]+)\)", text):
        assert (file.parent / link).is_file(), link


def test_the_prompt_of_the_players_page_is_what_is_sent():
    ((file, text),) = prompt.files()
    assert file.read_text() == text


def test_the_table_of_speeds_is_what_was_measured():
    ((file, text),) = speeds.files()
    assert file.read_text() == text
    measured_speeds = json.loads(speeds.SPEEDS.read_text())
    assert sorted(measured_speeds) == sorted(SCENARIOS)
    for name, one in measured_speeds.items():
        assert (f"| `{name}` |" in text) == (one["peer"] is not None)
        if one["peer"] is not None:
            assert one["ratio"] == pytest.approx(one["steps_per_second"] / one["peer_steps_per_second"], rel=0.01)


def test_scores_of_the_entries_are_those_of_the_leaderboard():
    """The mean returns of the file are what the records of leaderboards/ say."""
    compared: set[tuple[str, str]] = set()
    for entry in sorted((ROOT / "leaderboards").rglob("episodes.jsonl"), key=lambda entry: len(entry.parts)):
        returns: dict[str, list[float]] = {}
        for line in entry.read_text().splitlines():
            record = json.loads(line)
            returns.setdefault(record["scenario"], []).append(record["returns"]["player_0"])
        for scenario, values in returns.items():
            if (scenario, entry.parent.name) in compared:
                continue  # of two entries with a scenario the first one counts
            told = measured()[scenario]["agents"][entry.parent.name]
            assert told["episodes"] == len(values)
            assert told["mean_return"]["value"] == pytest.approx(sum(values) / len(values), abs=1e-6)
            compared.add((scenario, entry.parent.name))
    assert len(compared) >= 100


def test_the_pictures_are_svg_that_moves_and_is_small():
    files = sorted(games.PICTURES.glob("*.svg"))
    assert len(files) == 2 * len(PAGES)
    for file in files:
        text = file.read_text()
        picture = ElementTree.fromstring(text)
        assert int(picture.attrib["width"]) == WIDTH
        frames = text.count('<g class="f ')
        assert frames >= 2
        assert text.count("animation-delay:") == frames
        assert text.count(' l"') == 1, "one frame, the last one, is there where nothing moves"
        assert len(text) < 64_000, file.name
        assert "<script" not in text


def test_bad_players_that_never_do_worse_are_refused(monkeypatch):
    monkeypatch.setattr("pages.pictures.playing.PATIENCE", 2)
    with pytest.raises(RuntimeError, match="got no more"):
        good_and_bad("cliff-walking", "random", "planner")


def test_the_picture_of_the_readme_is_what_the_entries_say():
    made = training_picture()
    assert (ROOT / "docs/images/play.svg").read_text() == made
    assert len(made) < 500_000


# ---------------------------------------------------------------- text


def test_a_made_part_is_put_between_its_marks():
    page = f"# A\n\n{marked('scores', 'old')}\n\nmore\n"
    assert put(page, "scores", r"new \1") == page.replace("old", r"new \1")
    with pytest.raises(ValueError, match="0 parts 'prompt'"):
        put(page, "prompt", "x")
    assert remade(page, {"scores": lambda: "new", "prompt": lambda: "x"}) == page.replace("old", "new")
    with pytest.raises(ValueError, match="the part 'scores' has no maker; known here are prompt"):
        remade(page, {"prompt": lambda: "x"})


def test_links_to_pictures_lead_to_files():
    for page in PAGES.values():
        links = re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.file.read_text())
        assert len(links) >= 2
        assert all((page.file.parent / link).is_file() for link in links)
