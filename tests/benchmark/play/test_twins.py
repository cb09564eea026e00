"""``run --twin`` and ``--twins``: a game's twins are scenarios of their own on the game's scale."""

import json
from typing import Any

import pytest

import benchmark
from benchmark.errors import UsageError
from benchmark.play.agents.choice import choose_scenarios, with_twins
from benchmark.play.options import RunOptions
from benchmark.runs.folder import RunFolder
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
