"""The same seeds otherwise: ``run --twins``, scenarios of their own on the game's scale, and ``run --resample``."""

import json
from pathlib import Path
from typing import Any

import pytest

import benchmark
from benchmark.entries.validation import manifest_problems
from benchmark.errors import UsageError
from benchmark.play.agents.choice import choose_scenarios, with_twins
from benchmark.play.options import RunOptions
from benchmark.runs.folder import RunFolder
from benchmark.runs.manifest import read_manifest
from benchmark.runs.plan import Plan, find_scenarios
from benchmark.runs.replay import replay

EPISODES = 6


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return benchmark.evaluate(
        ["planner", "random"],
        scenarios=["frozen-lake", "taxi"],
        episodes=EPISODES,
        twins=2,
        out=tmp_path_factory.mktemp("twins") / "run",
        quiet=True,
    )


def test_the_overall_score_counts_a_game_once(results):
    document = results.document(max_episodes=0)
    assert document["overall_scenarios"] == ["frozen-lake", "taxi"]
    twins = {"frozen-lake": 0, "frozen-lake-twin-1": 1, "frozen-lake-twin-2": 2, "taxi": 0}
    assert {row["scenario"]: row["twin"] for row in document["scores"]} == twins
    lakes = [row for row in document["scores"] if row["scenario"].startswith("frozen-lake")]
    assert len({(row["blind"]["value"], row["reference"]["value"]) for row in lakes}) == 1  # one scale for all


def test_episodes_of_twins_are_played_again_from_their_records(results):
    folder = RunFolder.open(results.folders[0])
    plan = Plan.from_manifest(folder.manifest)
    twins = [record for record in folder.records() if "twin" in record.scenario]
    assert len(twins) == 2 * 2 * EPISODES
    for record in twins[::5]:
        again = replay(record, plan.scenarios[record.scenario])
        assert again.episode.returns == record.returns


def test_a_run_says_what_has_no_twins(textbench):
    ran = textbench(
        *("run", "--agent", "random", "--scenario", "nim", "--scenario", "taxi", "--episodes", 2, "--twin", 3),
        *("--out", "run", "--json"),
    )
    assert ran.code == 0
    assert "these have no twins and are not played: taxi" in ran.err
    document = json.loads(ran.out)
    assert [(row["scenario"], row["twin"]) for row in document["scores"]] == [("nim-twin-3", 3)]
    assert textbench("resume", "run").code == 0


def test_options_that_contradict_each_other_are_refused():
    def choose(**options: Any) -> list[str]:
        told = RunOptions(given=frozenset(options), **options)
        return list(with_twins(choose_scenarios(told), told, print).scenarios)

    assert choose(scenarios=("nim",), twins=2) == ["nim", "nim-twin-1", "nim-twin-2"]
    assert choose(scenarios=("nim",), twin=0) == ["nim"]
    with pytest.raises(UsageError, match="give one of them"):
        choose(scenarios=("nim",), twin=1, twins=2)
    with pytest.raises(UsageError, match="no twins of taxi"):
        choose(scenarios=("taxi",), twin=1)


def test_a_twin_is_a_scenario_by_its_name():
    assert find_scenarios(["nim-twin-12"])["nim-twin-12"].kwargs["twin"] == 12
    for name in ("nim-twin-0", "nim-twin-01", "taxi-twin-1", "nim-twin-"):
        with pytest.raises(UsageError):
            find_scenarios([name])


# ---------------------------------------------------------------- other samples


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
    assert read_manifest(other)["settings"]["resample"] == 1
    assert "resample" not in read_manifest(first)["settings"]


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
