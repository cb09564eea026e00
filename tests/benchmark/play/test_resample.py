"""``run --resample``: the same seeds with other samples."""

import json
from pathlib import Path
from typing import Any

import pytest

import benchmark
from benchmark.entries.validation import manifest_problems
from benchmark.runs.folder import RunFolder
from benchmark.runs.manifest import read_manifest
from benchmark.runs.plan import Plan


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The same seeds three times: as they are, as they are again, and with other samples."""
    folder = tmp_path_factory.mktemp("variance")
    played: dict[str, Any] = {"scenarios": ["frozen-lake-slippery", "cliff-walking"], "episodes": 10, "quiet": True}
    for name, more in (("first", {}), ("again", {}), ("other", {"resample": 1})):
        benchmark.evaluate({"random": "random", "planner": "planner"}, out=folder / name, **played, **more)
    return [folder / name for name in ("first", "again", "other")]


def returns(path: Path, agent: str) -> list[tuple[str, int, float]]:
    found = [record for record in RunFolder.open(path).records() if record.agents["player_0"] == agent]
    return sorted((record.scenario, record.seed, record.returns["player_0"]) for record in found)


def test_other_samples_are_of_the_same_starts_and_chances(runs):
    first, again, other = runs
    assert returns(first, "random") == returns(again, "random") != returns(other, "random")
    assert returns(first, "planner") == returns(other, "planner")  # as it draws nothing, it meets the same chances
    assert json.loads((other / "manifest.json").read_text())["settings"]["resample"] == 1
    assert "resample" not in json.loads((first / "manifest.json").read_text())["settings"]


def test_other_samples_are_no_entry_and_no_part_of_the_run(runs, textbench):
    merged = textbench("merge", runs[0], runs[2], "--out", "merged")
    assert merged.code == 2
    assert "was played with resample 1, " in " ".join(merged.err.split())
    manifest = read_manifest(runs[2])
    card = manifest["agents"][0]
    own = [row for row in manifest["matchups"] if row["agents"] == [card["name"]]]
    manifest = {**manifest, "agents": [card], "agent": card["name"], "matchups": own}
    problems = list(manifest_problems(manifest, Plan.from_manifest(manifest)))
    assert "manifest.json: settings.resample is 1, an entry has the samples of its seeds" in problems
    assert textbench("run", "--agent", "random", "--scenario", "nim", "--resample", 0).code == 2
