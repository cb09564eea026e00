"""Steps for other programs say what happened, from a replay."""

import csv
import io
import json

import pytest

from benchmark.runs.folder import RunFolder
from benchmark.runs.replay import replay
from textgames import SCENARIOS


def steps_of(textbench, run):
    return list(csv.DictReader(io.StringIO(textbench("export", run, "--csv", "-", "--steps").out)))


def test_exported_steps_say_what_happened(textbench, small_run):
    expected = [
        replayed.happened(step)
        for record in RunFolder.open(small_run).records()
        for replayed in [replay(record, SCENARIOS[record.scenario])]
        for step in replayed.steps
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


@pytest.mark.parametrize("what", ["--csv", "--parquet", "--sft", "--preferences", "--html"])
@pytest.mark.parametrize("file", ["episodes.jsonl", "manifest.json"])
def test_no_file_of_a_run_is_written_over(textbench, small_run, what, file):
    """It would be empty before its episodes were read."""
    before = (small_run / file).read_bytes()
    done = textbench("leaderboard" if what == "--html" else "export", small_run, what, small_run / file)
    assert (done.code, "is a file of the run in" in done.err) == (2, True)
    assert (small_run / file).read_bytes() == before


def test_what_has_nothing_to_write_leaves_the_old_file(textbench, small_run, workplace):
    (workplace / "old.jsonl").write_text("keep")
    assert (
        textbench("run", "--agent", "planner", "--scenario", "frozen-lake", "--episodes", 2, "--out", "best").code == 0
    )
    done = textbench("export", "best", "--preferences", "old.jsonl")
    assert (done.code, "nothing to write to old.jsonl" in done.err) == (2, True)
    assert (workplace / "old.jsonl").read_text() == "keep"
    assert textbench("export", small_run, "--csv", "old.jsonl").code == 0
    assert (workplace / "old.jsonl").read_text() == textbench("export", small_run, "--csv", "-").out


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (("--csv", "a", "--sft", "a"), "--csv and --sft both write to a"),
        (("--csv", "-", "--preferences", "-"), "--csv and --preferences both write to -"),
        (("--parquet", "-"), "--parquet takes a file"),
    ],
)
def test_two_outputs_have_two_places(textbench, small_run, wanted, message):
    done = textbench("export", small_run, *wanted)
    assert (done.code, message in done.err) == (2, True)
