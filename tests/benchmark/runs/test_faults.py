"""Every call that writes fails, or the file is moved, replaced or cut meanwhile: what was said to be kept is kept."""

import itertools
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmark.errors import BenchmarkError
from benchmark.runs import folder as folder_module
from benchmark.runs.folder import RunFolder
from tests.benchmark.helpers import counted
from tests.faults import broken, faults, full

RUN = ("run", "--agent", "random", "--scenario", "frozen-lake", "--quiet", "--out", "o")
SIX = (*RUN, "--episodes", "6")


def kept_in(path: Path) -> int:
    try:
        return sum(scored for _, scored in RunFolder.open(path).index().values())
    except BenchmarkError:
        return 0


@pytest.mark.parametrize(
    ("happen", "lasting", "stride"),
    [
        (full, False, 7),
        (broken, True, 7),
        *(pytest.param(how, how is full, 3, marks=pytest.mark.slow) for how in (full, broken)),
        *(pytest.param(how, last, 1, marks=pytest.mark.nightly) for how in (full, broken) for last in (False, True)),
    ],
)
def test_a_run_loses_nothing_that_it_said_was_kept(textbench, monkeypatch, happen, lasting, stride):
    monkeypatch.setattr(folder_module, "SYNC_SECONDS", 0.0)  # a sync after every episode
    with faults(Path("o")) as counting:
        assert textbench(*SIX).code == 0
    whole, number = counted("o"), len(counting.calls)
    assert {"write", "fsync", "open", "file.write", "replace"} <= set(counting.calls)
    stopped = 0
    for at in range(1, number + 1, stride):
        shutil.rmtree("o")
        with faults(Path("o"), at, happen, lasting=lasting):
            done = textbench(*SIX)
        what = at, counting.calls[at - 1], done
        assert done.code in (0, 1, 2), what
        assert "Traceback" not in done.err, what
        stopped += done.code > 0
        if (said := re.search(r"(\d+) of 6 episodes are kept", done.err)) is not None:
            assert int(said[1]) <= kept_in(Path("o")), what
        elif done.code == 0:
            assert counted("o") == whole, what
        again = textbench(*(("resume", "o", "--quiet") if Path("o/manifest.json").exists() else SIX))
        assert again.code == 0, (what, again)
        assert counted("o") == whole, what
        assert sorted(path.name for path in Path("o").iterdir()) == [".lock", "episodes.jsonl", "manifest.json"], what
    assert stopped > 0.7 * len(range(1, number + 1, stride))


@pytest.mark.parametrize(
    ("happen", "stride"),
    [(full, 5), (broken, 5), *(pytest.param(how, 1, marks=pytest.mark.nightly) for how in (full, broken))],
)
def test_a_repair_loses_no_line(textbench, happen, stride):
    assert textbench(*SIX).code == 0
    whole = counted("o")
    lines = Path("o/episodes.jsonl").read_bytes().splitlines(keepends=True)
    Path("o/episodes.jsonl").write_bytes(b"".join([*lines[:2], b"damaged\n", *lines[4:], b"half a line"]))
    shutil.copytree("o", "damaged")
    repair = ("resume", "o", "--quiet", "--repair")
    with faults(Path("o")) as counting:
        assert textbench(*repair).code == 0
    for at in range(1, len(counting.calls) + 1, stride):
        shutil.rmtree("o")
        shutil.copytree("damaged", "o")
        with faults(Path("o"), at, happen):
            done = textbench(*repair)
        assert done.code in (0, 1, 2), (at, done)
        assert "Traceback" not in done.err, (at, done)
        assert textbench(*repair).code == 0, at
        assert counted("o") == whole, at
        assert "damaged" in Path("o/episodes.damaged.jsonl").read_text().splitlines(), at


# ---------------------------------------------------------------- files that are lost


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
    (moved, "was moved or removed", 0),
    (replaced, "was replaced by another file", 0),
    (replaced_whole, "was replaced by another file", 0),
    (linked, "was replaced by another file", 0),
    (cut, "was cut from", 1),
]


@pytest.mark.parametrize(("change", "said", "kept"), CHANGES, ids=lambda value: getattr(value, "__name__", None))
@pytest.mark.parametrize(
    ("at", "seconds"), [(5, 0.0), pytest.param(12, 1000.0, marks=pytest.mark.slow)], ids=["synced", "at the end"]
)
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
    done = textbench(*RUN, "--episodes", 12)
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
