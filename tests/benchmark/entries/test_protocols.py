"""Entries of every protocol are accepted as what they are, and forged retries are refused."""

import json
import shutil
from copy import deepcopy
from pathlib import Path

import pytest

from benchmark.entries.validation import check_entry
from tests.benchmark.helpers import change_manifest, lines_of, write_lines

EPISODES = 2
PLAYERS = Path(__file__).parents[1] / "stubborn_players.py"


@pytest.fixture(autouse=True)
def short_entries(monkeypatch):
    monkeypatch.setattr("benchmark.entries.entry.MIN_EPISODES", EPISODES)


def submitted(textbench, *options):
    run = ("run", "--agent", f"hesitant={PLAYERS}:Hesitant", "--episodes", EPISODES, "--out", "r", "--quiet")
    done = textbench(*run, *options)
    assert done.code == 0, done.err
    assert textbench("submit", "r", "--out", "entries").code == 0
    return Path("entries/hesitant")


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [(), ("--protocol", "retry:1"), *(("--protocol", each) for each in ("default", "forfeit"))]
)
def test_an_entry_of_every_protocol_is_accepted(textbench, options):
    entry = submitted(textbench, *options)
    assert check_entry(entry).problems == []
    scores = json.loads(textbench("leaderboard", "entries", "--json").out)["scores"]
    assert {row["protocol"] for row in scores} == {options[1] if options else "random"}


def test_an_entry_can_not_claim_another_protocol(textbench):
    """What was executed tells by what it was played."""
    entry = submitted(textbench)
    for protocol in ("default", "forfeit", "retry"):
        change_manifest(entry, lambda m, protocol=protocol: m["settings"].update(protocol=protocol))
        assert check_entry(entry).problems


def test_forged_retries_are_refused(textbench):
    entry = submitted(textbench, "--protocol", "retry")
    records = lines_of(entry)
    places = [(i, j) for i, record in enumerate(records) for j, step in enumerate(record["steps"]) if "refused" in step]
    record, number = places[0]

    def problems(change):
        forged = deepcopy(records)
        change(forged[record]["steps"][number])
        copy = Path(shutil.copytree(entry, Path("forged") / entry.name, dirs_exist_ok=True))
        write_lines(copy, forged)
        return " ".join(check_entry(copy).problems)

    assert not problems(lambda step: None)
    assert "may give 3" in problems(lambda step: step.update(refused=step["refused"] * 4))
    assert "can be read" in problems(
        lambda step: step["refused"][0].update(response="left" if record < 2 * EPISODES else "up")
    )
    assert "refused for 'no_tag', the replay gives 'empty'" in problems(
        lambda step: step["refused"][0].update(unreadable="no_tag")
    )
    assert "refused" in problems(lambda step: step["refused"][0].update(tokens=[1]))
    assert "finish_reason" in problems(lambda step: step["refused"][0].update(finish_reason="bored"))


def test_the_committed_entries_are_read_whatever_they_were_played_by():
    entries = Path(__file__).parents[3] / "leaderboards"
    from benchmark.runs.manifest import read_manifest

    for manifest in entries.glob("*/manifest.json"):
        settings = read_manifest(manifest.parent)["settings"]
        told = json.loads(manifest.read_text())["settings"]
        assert settings["protocol"] == told.get("protocol", "default")
        assert settings["moves"] == told.get("moves", "listed")
