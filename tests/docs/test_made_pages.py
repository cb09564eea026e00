"""What of the documentation is made from the code is what the code makes: python docs/tools/make_pages.py renews it."""

import json
import re
from pathlib import Path

import pytest
from make_pages import stale
from pages import gallery, games, tables
from pages.marks import marked, names_in, put, remade
from pages.scores import measured

from textgames import SCENARIOS

ROOT = Path(__file__).parents[2]
PAGES = {page.name: page for page in games.pages()}


def test_every_scenario_has_a_page_with_its_made_parts():
    assert sorted(name for page in PAGES.values() for name in page.scenarios) == sorted(SCENARIOS)
    for page in PAGES.values():
        parts = names_in(page.file.read_text())
        assert {"picture", "observation", *["scenarios", "scores"] * bool(page.scenarios)} <= set(parts), page.name
        assert parts == sorted(set(parts), key=list(games.PARTS).index), page.name


@pytest.mark.slow
def test_nothing_is_stale():
    assert [file for file, _ in stale()] == []


def test_the_gallery_has_every_scenario_once():
    ((file, text),) = gallery.files()
    for name in SCENARIOS:
        assert text.count(f"[{name}](games/") == 1
    for link in re.findall(r"\]\((games/[^)]+)\)", text):
        assert (file.parent / link).is_file(), link


def test_the_table_of_speeds_has_what_was_measured():
    text = tables.speeds()
    measured_speeds = json.loads(tables.SPEEDS.read_text())
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


def test_a_made_part_is_put_between_its_marks():
    page = f"# A\n\n{marked('scores', 'old')}\n\nmore\n"
    assert put(page, "scores", r"new \1") == page.replace("old", r"new \1")
    with pytest.raises(ValueError, match="0 parts 'prompt'"):
        put(page, "prompt", "x")
    assert remade(page, {"scores": lambda: "new", "prompt": lambda: "x"}) == page.replace("old", "new")
    with pytest.raises(ValueError, match="the part 'scores' has no maker; known here are prompt"):
        remade(page, {"prompt": lambda: "x"})
