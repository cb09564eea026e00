"""The value lost per move is worked out once for a folder's episodes, and kept where no more of them are coming."""

import json
import shutil
from pathlib import Path

import pytest

import benchmark
from benchmark.score import move_losses
from benchmark.score.move_losses import VALUE_LOST
from benchmark.score.results import read_columns


@pytest.fixture(scope="module")
def played_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("losses")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEXTBENCH_CACHE_DIR", str(place / "cache"))
        benchmark.evaluate(
            ["planner", "random"], scenarios=["tic-tac-toe"], episodes=2, out=place / "played", quiet=True
        )
    return place / "played"


@pytest.fixture
def played(workplace: Path, played_once: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of which nothing is kept yet."""
    monkeypatch.setenv("TEXTBENCH_CACHE_DIR", str(workplace / "cache"))
    return Path(shutil.copytree(played_once, workplace / "played"))


def lost(folder: Path) -> dict[str, list[float]]:
    cells = read_columns([folder]).cells
    return {agent: list(cell.metrics.get(VALUE_LOST, ())) for (agent, _), cell in cells.items()}


def kept(folder: Path) -> list[Path]:
    return sorted((folder.parent / "cache").glob("losses-*.json"))


@pytest.mark.slow
def test_it_is_worked_out_once_and_kept(played: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = lost(played)
    assert set(first["planner"]) == {0.0} != set(first["random"])
    assert len(kept(played)) == 1
    monkeypatch.setattr(move_losses, "replay", None)  # nothing is played again
    assert lost(played) == first
    monkeypatch.undo()
    for file in kept(played):
        file.write_text("garbage")
    assert lost(played) == first


def test_nothing_is_kept_of_a_run_that_is_being_played(played: Path) -> None:
    first = lost(played)
    manifest = json.loads((played / "manifest.json").read_text())
    manifest["sessions"][-1]["finished"] = None
    (played / "manifest.json").write_text(json.dumps(manifest))
    shutil.rmtree(played.parent / "cache")
    assert lost(played) == first
    assert kept(played) == []


def test_more_episodes_than_it_is_told_of_are_left_out(played: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = lost(played)
    shutil.rmtree(played.parent / "cache")
    monkeypatch.setattr(move_losses, "LIMIT", 1)
    known = [value == value for value in lost(played)["random"]]
    assert sum(known) == 1 < len(whole["random"])
    monkeypatch.undo()
    monkeypatch.setenv("TEXTBENCH_CACHE_DIR", str(played.parent / "cache"))
    assert lost(played) == whole  # what was left out is no answer that was kept
