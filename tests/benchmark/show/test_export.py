"""Steps for other programs say what happened, from a replay."""

import csv
import io
import json

from benchmark.runs.folder import RunFolder
from benchmark.runs.replay import replay
from textgames import SCENARIOS


def steps_of(textbench, run):
    return list(csv.DictReader(io.StringIO(textbench("export", run, "--csv", "-", "--steps").out)))


def test_exported_steps_say_what_happened(textbench, small_run):
    expected = [
        step.happened
        for record in RunFolder.open(small_run).records()
        for step in replay(record, SCENARIOS[record["scenario"]]).steps
    ]
    assert [row["happened"] for row in steps_of(textbench, small_run)] == expected
    assert any(text.startswith("slipped") for text in expected)


def test_an_episode_of_other_rules_is_exported_without_what_happened(textbench, small_run):
    lines = (small_run / "episodes.jsonl").read_text().splitlines()
    first = {**json.loads(lines[0]), "observations_digest": "0" * 32}
    (small_run / "episodes.jsonl").write_text("\n".join([json.dumps(first), *lines[1:], ""]))
    rows = steps_of(textbench, small_run)
    told = [row for row in rows if (row["scenario"], row["seed"]) == (first["scenario"], str(first["seed"]))]
    own = [row for row in told if row["agent"] == first["agents"]["player_0"]]
    assert len(own) == len(first["steps"])
    assert {row["happened"] for row in own} == {""}
    assert any(row["happened"] for row in rows)
