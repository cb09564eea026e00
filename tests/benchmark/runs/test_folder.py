"""The run folder: nothing that was finished is lost, nothing foreign is taken for ours."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from agents.common.redaction import Redactor
from agents.episode import Episode, Step
from agents.turn import Turn
from benchmark.errors import StorageError, UsageError
from benchmark.runs.folder import DAMAGED_NAME, EPISODES_NAME, RunFolder
from benchmark.runs.manifest import MANIFEST_NAME, MANIFEST_VERSION, RUN_KIND
from benchmark.runs.plan import scenario_to_json
from tests.faults import files_of_at_most
from textgames.scenarios import SCENARIOS

MANIFEST = {
    "schema_version": MANIFEST_VERSION,
    "kind": RUN_KIND,
    "textbench": {"version": "1"},
    "settings": {},
    "scenarios": {"frozen-lake": scenario_to_json(SCENARIOS["frozen-lake"])},
    "agents": [],
    "matchups": [],
}


def record(seed, error=None, response="up"):
    me = {"player_0": "me"}
    steps = (Step(0, "player_0", "", Turn(response), "up", True, None, 0.0),)
    return Episode(
        "frozen-lake", seed, None, me, steps, {"player_0": 0.0}, {"player_0": False}, not error, False, error
    )


@pytest.fixture
def folder(tmp_path):
    with RunFolder.create(tmp_path / "run", dict(MANIFEST), Redactor()) as made:
        yield made


def test_a_scored_record_stands_for_the_failures_before_it(folder):
    folder.append(record(1, error="500"))
    folder.append(record(3, error="500"))
    folder.append(record(3, error="503"))
    folder.append(record(2))
    folder.append(record(1))
    folder.append(record(1, response="a second play, which nobody asked for"))
    assert [(r.seed, r.error) for r in folder.records()] == [(2, None), (1, None), (3, "503")]
    assert {key.seed: scored for key, (_, scored) in folder.index().items()} == {1: True, 2: True, 3: False}
    assert all(r.steps[0].turn.response == "up" for r in folder.records())
    # whoever looks an episode up by its place finds the same play
    assert all(r.steps[0].turn.response == "up" for r in folder.records_at(at for at, _ in folder.index().values()))


def test_an_unfinished_last_line_is_dropped_and_cut_off(folder):
    folder.append(record(1))
    folder.append(record(2))
    folder.close()
    whole = folder.episodes_path.read_bytes()
    first = whole.index(b"\n") + 1
    for length in (10, first + 1, first + 40, len(whole) - 1):
        folder.episodes_path.write_bytes(whole[:length])
        kept = [r.seed for r in RunFolder.open(folder.path).records()]
        assert kept == [1] * (length > first)
        with RunFolder.open_for_writing(folder.path, Redactor()) as again:
            assert folder.episodes_path.stat().st_size == first * len(kept)
            for seed in range(1 + len(kept), 3):
                again.append(record(seed))
        assert folder.episodes_path.read_bytes() == whole


def test_damaged_lines_are_set_aside_and_nothing_else_is_touched(folder):
    folder.append(record(1))
    folder.append(record(2))
    folder.close()
    first, second = folder.episodes_path.read_bytes().splitlines(keepends=True)
    foreign = second.replace(b"frozen-lake", b"chess")
    folder.episodes_path.write_bytes(b"\x00\x00\n" + first + foreign + second)
    with RunFolder.open_for_writing(folder.path, Redactor()) as again:
        assert again.set_damaged_lines_aside() == 2
        again.append(record(3))
        assert again.set_damaged_lines_aside() == 0
    assert [r.seed for r in RunFolder.open(folder.path).records()] == [1, 2, 3]
    assert (folder.path / DAMAGED_NAME).read_bytes() == b"\x00\x00\n" + foreign


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, r"run has no file episodes\.jsonl; play its episodes again: textbench resume"),
        (os.mkdir, r"episodes\.jsonl isn't a file; move it away, and play its episodes again: textbench resume"),
        (os.mkfifo, r"episodes\.jsonl: it is a device or a pipe; accepted: a file; remove it"),
    ],
)
def test_episodes_that_arent_in_a_file_are_one_sentence(folder, make, said):
    folder.close()
    folder.episodes_path.unlink()
    make(folder.episodes_path)
    with pytest.raises(UsageError, match=said):
        list(RunFolder.open(folder.path).records())


@pytest.mark.slow
def test_two_processes_cant_write_one_run(folder):
    code = (
        "import sys; from pathlib import Path; from benchmark.runs.folder import RunFolder\n"
        "from agents.common.redaction import Redactor; RunFolder.open_for_writing(Path(sys.argv[1]), Redactor())"
    )
    command = [sys.executable, "-c", code, str(folder.path)]
    assert "is in use by another textbench process" in subprocess.run(command, capture_output=True, text=True).stderr
    folder.close()
    assert subprocess.run(command, capture_output=True, text=True).stderr == ""


@pytest.mark.parametrize(
    ("name", "said"), [("thesis.tex", r"isn't empty.*thesis\.tex"), ("manifest.json", "already holds a run")]
)
def test_a_folder_with_other_things_in_it_isnt_taken(tmp_path, name, said):
    (tmp_path / name).write_text("theirs")
    with pytest.raises(UsageError, match=said):
        RunFolder.create(tmp_path, dict(MANIFEST), Redactor(), {"prompts.toml": b"ours"})
    assert (tmp_path / name).read_text() == "theirs"
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "not JSON"),
        (
            '{"schema_version": 1, "kind": "npm-package"}',
            "kind must be 'textbench-run' or 'textbench-entry', got 'npm-p",
        ),
        (json.dumps({**MANIFEST, "schema_version": 9}), "schema_version must be 1, got 9"),
        (json.dumps({key: value for key, value in MANIFEST.items() if key != "agents"}), "agents is missing"),
        (json.dumps(MANIFEST)[:-1] + ', "agents": []}', "the key 'agents' stands twice"),
        (json.dumps({**MANIFEST, "note": float("nan")}), "NaN isn't a JSON number"),
        (b'{"note": "\xff"}', "not UTF-8"),
        ('{"note": ' * 100_000, "nested too deeply"),
    ],
)
def test_a_foreign_manifest_is_one_sentence(tmp_path, content, complaint):
    (tmp_path / MANIFEST_NAME).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UsageError, match=complaint):
        RunFolder.open(tmp_path)


def test_a_full_disk_keeps_what_was_finished_and_the_old_manifest(folder):
    folder.append(record(1))
    size, before = folder.episodes_path.stat().st_size, (folder.path / MANIFEST_NAME).read_bytes()
    with files_of_at_most(size + 100), pytest.raises(StorageError, match=r"can't write to .*episodes\.jsonl"):
        folder.append(record(2, response="x" * 500))
    assert folder.episodes_path.stat().st_size == size
    folder.append(record(3))
    assert [r.seed for r in folder.records()] == [1, 3]
    folder.manifest["note"] = "x" * 1000
    with files_of_at_most(20), pytest.raises(StorageError, match="can't write"):
        folder.write_manifest()
    assert (folder.path / MANIFEST_NAME).read_bytes() == before
    assert {path.name for path in folder.path.iterdir()} == {MANIFEST_NAME, EPISODES_NAME, ".lock"}


def test_what_is_written_is_scrubbed(tmp_path):
    manifest = {**MANIFEST, "note": "key sk-planted-0123456789"}
    with RunFolder.create(tmp_path / "run", manifest, Redactor(["sk-planted-0123456789"])) as folder:
        folder.append(record(1, error="401: wrong key sk-planted-0123456789"))
        folder.append(record(2, response="my key is sk-planted-0123456789"))
    for file in folder.path.iterdir():
        assert b"planted" not in file.read_bytes()
    assert [r.error for r in folder.records()] == [None, "401: wrong key [redacted]"]


def test_what_no_reader_accepts_isnt_written(folder):
    folder.append(record(1))
    for change in (
        {"seed": 2**53},
        {"scenario": "chess"},
        {"returns": {"player_0": float("nan")}},
        {"measured": {"cached_tokens": [10**12, 0]}},
        {"measured": {"served_by": {"player_0": ["x" * 1001]}}},
    ):
        with pytest.raises(ValueError):
            folder.append(replace(record(2), **change))
    folder.append(record(3))
    assert [r.seed for r in RunFolder.open(folder.path).records()] == [1, 3]


def test_others_read_an_episode_as_soon_as_append_returns_and_are_told_of_a_change_that_no_secret_makes(
    folder, monkeypatch
):
    for seed in range(3):
        folder.append(record(seed, response="the word is planted-0123456789"))
        assert [r.seed for r in RunFolder.open(folder.path).records()] == list(range(seed + 1))
    monkeypatch.setenv("MY_API_KEY", "planted-0123456789")  # a secret of the reader
    found, *_ = RunFolder.open(folder.path).records()
    assert found.steps[0].turn.response == "the word is [redacted]"
    changed = folder.episodes_path.read_bytes().replace(b'"reward":0.0', b'"reward":9.0')
    folder.episodes_path.write_bytes(changed)
    with pytest.raises(UsageError, match=r"line 1 isn't an episode: its checksum doesn't fit.*--repair"):
        list(RunFolder.open(folder.path).records())
