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
@pytest.mark.parametrize("protocol", ["random", "retry:1", "default", "forfeit"])
def test_an_entry_of_every_protocol_is_accepted_and_can_claim_no_other(textbench, protocol):
    """What was executed tells by what it was played."""
    entry = submitted(textbench, "--protocol", protocol)
    assert check_entry(entry).problems == []
    scores = json.loads(textbench("leaderboard", "entries", "--json").out)["scores"]
    assert {row["protocol"] for row in scores} == {protocol}
    for other in {"random", "default", "forfeit", "retry"} - {protocol.partition(":")[0]}:
        change_manifest(entry, lambda m, other=other: m["settings"].update(protocol=other))
        assert check_entry(entry).problems, other


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
