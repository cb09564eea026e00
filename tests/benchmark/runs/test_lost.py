"""A run notices that its file was moved, removed, replaced or cut while it writes, and says so at its end."""

import itertools
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmark.runs import folder as folder_module
from benchmark.runs.folder import RunFolder

RUN = ("run", "--scenario", "frozen-lake", "--episodes", "12", "--out", "o", "--quiet", "--agent", "random")


def removed() -> None:
    shutil.rmtree("o")


def moved() -> None:
    Path("o").rename("elsewhere")


def replaced_whole() -> None:
    """Another run takes the place of this one."""
    Path("o").rename("elsewhere")
    shutil.copytree("elsewhere", "o")
    Path("o/manifest.json").write_text("{}")
    Path("o/episodes.jsonl").write_text("theirs\n")


def replaced() -> None:
    Path("other").write_bytes(b"")
    os.replace("other", "o/episodes.jsonl")


def linked() -> None:
    Path("o/episodes.jsonl").rename("diary")
    Path("o/episodes.jsonl").symlink_to(Path("diary").absolute())


def cut() -> None:
    lines = Path("o/episodes.jsonl").read_bytes().splitlines(keepends=True)
    os.truncate("o/episodes.jsonl", len(lines[0]))


CHANGES = [
    (removed, "was moved or removed", 0),
    (moved, "was moved or removed", 0),
    (replaced, "was replaced by another file", 0),
    (replaced_whole, "was replaced by another file", 0),
    (linked, "was replaced by another file", 0),
    (cut, "was cut from", 1),
]


@pytest.mark.parametrize(("change", "said", "kept"), CHANGES, ids=lambda value: getattr(value, "__name__", None))
@pytest.mark.parametrize(("at", "seconds"), [(5, 0.0), (12, 1000.0)], ids=["synced", "at the end"])
def test_a_run_whose_file_is_changed_stops_and_claims_no_more_than_is_there(
    textbench, monkeypatch, change, said, kept, at, seconds
):
    monkeypatch.setattr(folder_module, "SYNC_SECONDS", seconds)
    append, count = RunFolder.append, itertools.count(1)

    def then_changed(folder: RunFolder, record: Any) -> None:
        append(folder, record)
        if next(count) == at:
            change()

    monkeypatch.setattr(RunFolder, "append", then_changed)
    done = textbench(*RUN)
    assert done.code == 1, done
    assert f"o/episodes.jsonl {said}" in done.err
    assert f"{kept} of 12 episodes are kept" in done.err
    assert "Traceback" not in done.err
    if change is replaced_whole:
        assert Path("o/manifest.json").read_text() == "{}", "the manifest of another run was replaced"
        assert Path("o/episodes.jsonl").read_text() == "theirs\n"
    if change in (moved, replaced_whole):
        shutil.rmtree("o", ignore_errors=True)
        Path("elsewhere").rename("o")
        assert textbench("resume", "o", "--quiet").code == 0
        assert len(Path("o/episodes.jsonl").read_bytes().splitlines()) == 12
