"""Luck-free figures beside the plain ones: in the data, in ranks and comparisons, in every table."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from benchmark.entries.entry import Terms
from benchmark.entries.validation import manifest_problems
from benchmark.runs.folder import RunFolder
from benchmark.runs.plan import Matchup, Plan
from benchmark.score import luck as luck_folder
from benchmark.score import results as results_module
from benchmark.score.comparison import compared, paired_differences
from benchmark.score.results import luck_free, read_columns
from benchmark.score.stopping import FIRST_LOOK, MOST, confidence_of, half_width, looks
from tests.benchmark.helpers import lines_of, write_lines

ENTRIES = Path(__file__).parents[3] / "leaderboards"
ICE = "frozen-lake-slippery"


def scores_of(done):
    assert done.code == 0, done.err
    return {(row["agent"], row["scenario"]): row for row in json.loads(done.out)["scores"]}


@pytest.mark.slow
def test_the_stored_entries_have_both(textbench):
    """The planner's play is optimal, so its score is 1 whatever the ice did to it."""
    scores = scores_of(textbench("leaderboard", ENTRIES, "--json", "--quiet"))
    planner, greedy = scores["planner", ICE], scores["greedy", ICE]
    assert planner["normalized"]["value"] == pytest.approx(1, abs=1e-12)
    assert planner["normalized_plain"]["value"] == pytest.approx(1.35, abs=0.005)
    assert planner["luck_free_return"]["value"] == pytest.approx(planner["reference"]["value"], abs=1e-12)
    assert greedy["normalized"]["value"] == pytest.approx(0.085, abs=0.01)
    for row in (planner, greedy):
        assert row["normalized_by"] == "luck_free"
        width, plain = (row[name]["high"] - row[name]["low"] for name in ("normalized", "normalized_plain"))
        assert width < plain / 3
        assert row["luck"]["values"] == "value iteration, version 1"
        assert row["luck"]["beta"] == pytest.approx(1, abs=0.05)
        assert row["luck"]["sd_ratio"] < 0.3
    assert (planner["rank"], greedy["rank"]) == (1, 2)  # by the plain means they can't be told apart
    for (_, scenario), row in scores.items():
        if scenario.startswith("snake"):
            assert (row["luck_free_return"], row["normalized_by"]) == (None, "plain")
            assert row["normalized"] == row["normalized_plain"]
            assert row["luck"]["values"] == "shortest tours of the food, fitted (heuristic), version 1"
            assert row["mean_return"]["low"] < row["controlled_return"]["value"] < row["mean_return"]["high"]
        else:
            assert row["controlled_return"] is None
        # without chance there is no luck to take out, but of random moves in place of unreadable answers
        if scenario == "frozen-lake" and row["invalid_rate"]["value"] == 0:
            assert row["luck_free_return"] == pytest.approx(row["mean_return"], abs=1e-12)
            assert row["normalized"] == pytest.approx(row["normalized_plain"], abs=1e-12)
    for agent, most in (("planner", 0.6), ("greedy", 0.85)):  # what a control variate takes out for those that eat
        assert scores[agent, "snake"]["luck"]["sd_ratio"] < most
    # the dry lake has chance only in the random moves that stand in for unreadable answers
    chancy = [row for row in scores.values() if row["scenario"] != "frozen-lake" or row["invalid_rate"]["value"] > 0]
    assert [row for row in scores.values() if row["luck"]] == chancy
    assert len(chancy) >= 27  # nine agents in three scenarios
    assert all(abs(row["luck"]["z"]) < 2 for row in chancy)


def test_a_heuristic_is_asked_only_for_its_own_figure(monkeypatch):
    """Ranks and comparisons of Snake are plain, so nothing is played again for them."""
    monkeypatch.setattr(luck_folder, "record_luck", None)
    results = read_columns([ENTRIES / "planner", ENTRIES / "greedy"])
    cells = [results.cells[agent, "snake"] for agent in ("planner", "greedy")]
    plain = cells[0].returns()[1] - cells[1].returns()[1]
    assert np.array_equal(paired_differences(results, "planner", "greedy", "snake"), plain)


def test_comparisons_are_of_luck_free_returns(textbench):
    results = read_columns([ENTRIES / "planner", ENTRIES / "greedy"])
    rows = {row["scenario"]: row for row in compared(results, [("planner", "greedy")])[0]}
    assert rows[ICE]["luck_free"] is True
    assert rows[ICE]["p_value"] < 0.001
    assert rows[ICE]["episodes_needed"] < 20
    assert rows["snake"]["luck_free"] is False
    planner, greedy = (results.cells[agent, ICE] for agent in ("planner", "greedy"))
    plain = planner.returns()[1] - greedy.returns()[1]
    corrected = paired_differences(results, "planner", "greedy", ICE)
    assert np.std(corrected) < np.std(plain) / 2
    values = [luck_free(cell, results.scenarios[ICE]).values for cell in (planner, greedy)]
    assert np.array_equal(corrected, values[0] - values[1])


def test_few_and_very_many_episodes_are_plain(textbench, monkeypatch):
    done = textbench("run", "--agent", "greedy", "--scenario", ICE, "--episodes", 19, "--json", "--quiet")
    row = scores_of(done)["greedy", ICE]
    assert (row["luck_free_return"], row["luck"], row["normalized_by"]) == (None, None, "plain")
    assert row["normalized"] == row["normalized_plain"]
    monkeypatch.setattr(results_module, "LUCK_LIMIT", 49)
    assert read_columns([ENTRIES / "planner"]).cells["planner", ICE].luck is None


def test_luck_is_computed_once_and_kept_until_episodes_change(workplace, monkeypatch):
    """A record that doesn't replay to its return has no luck, and its agent's scores are plain."""
    entry = shutil.copytree(ENTRIES / "planner", workplace / "planner")
    monkeypatch.setenv("TEXTBENCH_CACHE_DIR", str(workplace / "cache"))
    first = read_columns([entry]).cells["planner", ICE].luck
    with monkeypatch.context() as patch:
        patch.setattr(luck_folder, "record_luck", None)  # nothing is played again
        assert np.array_equal(first, read_columns([entry]).cells["planner", ICE].luck)
    for file in (workplace / "cache").iterdir():
        file.write_text("garbage")
    assert np.array_equal(first, read_columns([entry]).cells["planner", ICE].luck)
    records = lines_of(entry)
    forged = next(one for one in records if one["scenario"] == ICE and one["returns"] == {"player_0": 0.0})
    forged.update(returns={"player_0": 1.0}, successes={"player_0": True})
    del forged["measured"]["checksum"]  # with it the line isn't read at all
    write_lines(entry, records)
    results = read_columns([entry])
    assert (
        results.cells["planner", ICE].luck is luck_free(results.cells["planner", ICE], results.scenarios[ICE]) is None
    )
    assert results.cells["planner", "frozen-lake"].luck is not None


@pytest.mark.slow
def test_until_adds_episodes_until_the_score_is_known(textbench):
    agents = [word for name in ("planner", "greedy", "random") for word in ("--agent", name)]
    done = textbench("run", *agents, "--scenario", ICE, "--until", 0.15, "--quiet", "--out", "u", "--json")
    scores = scores_of(done)
    assert scores["planner", ICE]["episodes"] in (100, 200)
    assert scores["greedy", ICE]["episodes"] in (50, 100, 200)
    for agent in ("planner", "greedy"):
        normalized = scores[agent, ICE]["normalized"]
        assert (normalized["high"] - max(0, normalized["low"])) / 2 <= 0.15
    # by how much random play is worse than blind play needn't be known
    assert scores["random", ICE]["episodes"] == 50
    assert scores["random", ICE]["normalized"]["high"] < 0
    manifest = RunFolder.open(Path("u")).manifest
    assert (manifest["settings"]["until"], manifest["settings"]["episodes"]) == (0.15, 1600)
    # a run that was cut ends where the whole one did
    lines = Path("u/episodes.jsonl").read_bytes().splitlines(keepends=True)
    Path("u/episodes.jsonl").write_bytes(b"".join(lines[:120]))
    resumed, untimed = scores_of(textbench("resume", "u", "--json", "--quiet")), {"seconds": 0, "cpu_seconds": 0}
    assert {key: row | untimed for key, row in resumed.items()} == {key: row | untimed for key, row in scores.items()}


@pytest.mark.slow
def test_until_says_when_the_most_episodes_were_not_enough(textbench):
    command = ("run", "--agent", "greedy", "--scenario", ICE, "--until", 0.02, "--episodes", 50, "--out", "few")
    done = textbench(*command)
    assert done.code == 1
    assert f"after 50 episodes these scores aren't known to --until 0.02: greedy in {ICE} (" in done.err
    assert "textbench resume few --episodes 100" in done.err
    more = textbench("resume", "few", "--episodes", 100, "--quiet", "--json")
    assert more.code == 1
    assert json.loads(more.out)["scores"][0]["episodes"] == 100


def test_every_look_of_an_extended_run_is_paid_for_and_allowed(textbench):
    """One agent stops at the old end, another goes on: an entry may have either count."""
    command = ("run", "--scenario", ICE, "--agent", "planner", "--agent", "greedy", "--until", 0.12, "--quiet")
    assert textbench(*command, "--episodes", 4, "--out", "u").code == 1
    assert textbench("resume", "u", "--episodes", 8, "--quiet").code == 1
    results = read_columns([Path("u")])
    manifest = results.sources[0][1]
    assert manifest["extended"] == [4]
    assert {cell.confidence for cell in results.cells.values()} == {1 - 0.05 / 2}  # after 4 and after 8
    for count, wrong in ((4, 0), (8, 0), (6, 1)):
        plan = Plan.from_manifest(manifest).with_episodes(count)
        plan = Plan(plan.scenarios, {Matchup(ICE, ("greedy",)): plan.seeds[ICE, ("greedy",)]})
        told = {**manifest, "agent": "greedy", "agents": [results.agents["greedy"]], "prices": {}}
        assert len(list(manifest_problems(told, plan, Terms((ICE,), 4)))) == wrong


def test_the_looks_double_up_to_the_most():
    assert looks(MOST) == [50, 100, 200, 400, 800, 1600]
    assert looks(300) == [50, 100, 200, 300]
    assert (looks(30), looks(FIRST_LOOK)) == ([30], [FIRST_LOOK])
    # a run that was extended has looked at its old ends, too
    assert looks(240, [120]) == [50, 100, 120, 200, 240]
    assert looks(400, [100, 200]) == looks(400)
    assert confidence_of({"until": 0.05, "episodes": 240}, [120]) == pytest.approx(1 - 0.05 / 5)
    assert confidence_of({"until": None, "episodes": 240}, [120]) == confidence_of({"episodes": 50}) == 0.95


def test_the_normalised_score_is_judged_where_there_is_one():
    wide, narrow = {"value": 0.5, "low": 0.0, "high": 1.0}, {"value": 0.5, "low": 0.4, "high": 0.6}
    fixed = {"value": 1.0, "low": None, "high": None}
    row = {"normalized": narrow, "luck_free_return": None, "mean_return": wide}
    assert half_width(row) == pytest.approx(0.1)
    assert half_width(row | {"normalized": None}) == 0.5
    assert half_width(row | {"normalized": None, "luck_free_return": narrow}) == pytest.approx(0.1)
    assert half_width(row | {"normalized": fixed}) == 0.0
    below = {"value": -2.0, "low": -4.0, "high": 0.0}  # by how much it is worse than blind play needn't be known
    assert half_width(row | {"normalized": below}) == 0.0
    assert half_width(row | {"normalized": below | {"high": 0.3}}) == pytest.approx(0.15)
    assert half_width(row | {"normalized": None, "mean_return": below}) == 2.0
