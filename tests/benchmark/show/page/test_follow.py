"""Following a run: when a page is made again, and when it isn't."""

import json
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from benchmark.cli import main
from benchmark.errors import UsageError
from benchmark.show.page.follow import LOOK_EVERY, pages_of, state_of


@pytest.fixture
def run(tmp_path: Path) -> Path:
    played = ["--agent", "random", "--scenario", "frozen-lake", "--episodes", "4", "--out", str(tmp_path / "run")]
    assert main(["run", *played, "--quiet"]) == 0
    return tmp_path / "run"


def test_a_page_comes_with_every_change_until_all_is_played(run: Path) -> None:
    episodes = run / "episodes.jsonl"
    lines = episodes.read_bytes().splitlines(keepends=True)
    episodes.write_bytes(b"".join(lines[:1]))
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) % 2 == 0:  # every second look finds one more episode
            written = len(episodes.read_bytes().splitlines())
            episodes.write_bytes(b"".join(lines[: written + 1]))

    def make(version: str) -> tuple[str, bool]:
        written = len(episodes.read_bytes().splitlines())
        return f"{written} of {version}", written == len(lines)

    pages = list(pages_of([run], make, sleep=sleep, clock=lambda: 0.0))
    assert [page.split()[0] for page, _ in pages] == ["1", "2", "3", "4"]
    assert all(page.endswith(version) for page, version in pages)
    assert all(before[1] != after[1] for before, after in pairwise(pages))
    assert set(slept) == {LOOK_EVERY}


def set_finished(run: Path, finished: str | None) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["sessions"][-1]["finished"] = finished
    (run / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(("finishes_after", "expected"), [(None, 40.0), (7, 7.0)])
def test_making_pages_takes_a_fifth_of_the_time_but_the_last_comes_at_once(
    run: Path, finishes_after: int | None, expected: float
) -> None:
    set_finished(run, None)
    ticks = iter([0.0, 10.0])
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == finishes_after:
            set_finished(run, "2026-11-22T12:00:00Z")

    pages = pages_of([run], lambda version: ("page", False), sleep=sleep, clock=lambda: next(ticks))
    next(pages)
    (run / "episodes.jsonl").touch()
    with pytest.raises(RuntimeError, match="StopIteration"):  # the clock has no third tick: the page is made again
        next(pages)
    assert sum(slept) == pytest.approx(expected)


def test_the_first_page_must_be_possible_and_later_ones_are_tried_again(run: Path) -> None:
    def refuse(version: str) -> tuple[str, bool]:
        raise UsageError("no episodes")

    with pytest.raises(UsageError, match="no episodes"):
        next(pages_of([run], refuse))
    attempts = iter([("first", False), None, ("second", True)])

    def make(version: str) -> tuple[str, bool]:
        page = next(attempts)
        if page is None:
            raise UsageError("half a line")
        return page

    def sleep(seconds: float) -> None:
        (run / "episodes.jsonl").touch()

    assert [page for page, _ in pages_of([run], make, sleep=sleep)] == ["first", "second"]


def test_the_state_knows_every_folder_of_a_folder(run: Path) -> None:
    shutil.copytree(run, run.parent / "other")
    before = state_of([run.parent])
    assert before == state_of([run.parent])
    with (run.parent / "other/episodes.jsonl").open("ab") as file:
        file.write(b"\n")
    assert state_of([run.parent]) != before
