"""From records to rows: counts, ranks, references, comparisons; checked by hand."""

import json

import numpy as np
import pytest

from benchmark.runs.manifest import MANIFEST_VERSION, RUN_KIND
from benchmark.runs.plan import MAX_SEEDS, Plan, expand_ranges, find_scenarios, to_ranges
from benchmark.runs.record import to_line
from benchmark.score.comparison import compare, paired_differences
from benchmark.score.references import ExactValues, References
from benchmark.score.results import read_results
from benchmark.score.scores import cost, overall_rows, rank_rows, score_rows
from textgames.scenarios import SCENARIOS


def write_run(folder, returns, scenario="frozen-lake", planned=None, errors=()):
    """A run folder of hand-made episodes: ``{agent: [return of episode 0, 1, ...]}``."""
    folder.mkdir()
    count = planned or max(len(values) for values in returns.values())
    plan = Plan.of(tuple(returns), find_scenarios([scenario]), count)
    cards = [{"name": name, "spec": name, "kind": "scripted", "settings": {}} for name in returns]
    manifest = {
        **{"schema_version": MANIFEST_VERSION, "kind": RUN_KIND, "textbench": {"version": "1"}, "settings": {}},
        **{"agents": cards, **plan.to_json(), "sessions": []},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    lines = []
    for name, values in returns.items():
        for k, value in enumerate(values):
            step = {
                "round": 0,
                "player": "player_0",
                "response": "x",
                "action": "left",
                "valid": False,
                "reward": value,
            }
            record = {
                **{"schema_version": 1, "scenario": scenario, "seed": SCENARIOS[scenario].seed(k)},
                **{"agents": {"player_0": name}, "steps": [{**step, "unreadable": "no_tag", "tokens": [10, 5]}] * 2},
                **{"returns": {"player_0": value}, "successes": {"player_0": value > 0}, "terminated": True},
                **{"truncated": False, "error": "down" if (name, k) in errors else None, "observations_digest": ""},
                "measured": {"seconds": 2.0, "cached_tokens": [4, 0]},
            }
            lines.append(to_line(record))
    (folder / "episodes.jsonl").write_bytes(b"".join(lines))
    return folder


def test_a_cell_is_counted_by_hand(tmp_path):
    results = read_results([write_run(tmp_path / "r", {"a": [1.0, 0.0, 1.0, 1.0]})])
    (row,) = score_rows(results)
    assert (row["episodes"], row["planned"], row["unscored"], row["rank"]) == (4, 4, 0, 1)
    assert row["mean_return"]["value"] == 0.75
    assert row["success_rate"]["value"] == 0.75
    assert row["invalid_rate"]["value"] == 1.0
    assert row["invalid_reasons"] == {"no_tag": 8}
    assert row["length"]["value"] == 2
    assert row["tokens"]["value"] == 30
    assert row["seconds"] == 2.0
    assert row["normalized"] is None
    assert row["cost"] is None  # tokens were used and nobody said what they cost
    assert cost(results.cells["a", "frozen-lake"].paid_tokens, {"input": 1e6, "output": 1e6}) == 4 * (20 - 4 + 10)


def test_only_whole_cells_are_ranked_and_equal_ones_share_a_place(tmp_path):
    returns = {"a": [1.0, 1.0], "b": [1.0, 1.0], "c": [0.0, 1.0], "late": [1.0], "down": [1.0, 1.0]}
    results = read_results([write_run(tmp_path / "r", returns, planned=2, errors={("down", 1)})])
    rows = {row["agent"]: row for row in score_rows(results)}
    assert {name: row["rank"] for name, row in rows.items()} == {"a": 1, "b": 1, "c": 3, "late": None, "down": None}
    assert rows["down"]["errors"] == {"down": 1}
    assert rows["down"]["episodes"] == 1
    assert list(rows)[:3] == ["a", "b", "c"]
    assert not results.complete


def test_an_agent_without_a_scored_episode_has_no_figures(tmp_path):
    results = read_results([write_run(tmp_path / "r", {"a": [1.0]}, errors={("a", 0)})])
    (row,) = score_rows(results, References(results))
    assert (row["episodes"], row["unscored"], row["rank"]) == (0, 1, None)
    assert row["mean_return"] is None


def test_the_same_name_in_two_runs_gets_the_runs_name_in_front(tmp_path):
    paths = [write_run(tmp_path / name, {"a": [1.0, 0.5]}) for name in ("before", "after")]
    results = read_results(paths)
    assert list(results.agents) == ["a", "after/a"]
    assert [row["agent"] for row in score_rows(results)] == ["a", "after/a"]


def test_two_meanings_of_a_scenario_cant_be_shown_together(tmp_path):
    paths = [write_run(tmp_path / name, {"a": [1.0]}) for name in ("one", "two")]
    manifest = json.loads((paths[1] / "manifest.json").read_text())
    manifest["scenarios"]["frozen-lake"]["horizon"] = 80
    (paths[1] / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(Exception, match="means something else by scenario 'frozen-lake'"):
        read_results(paths)


def test_a_frozen_lake_reference_is_the_optimum_of_the_episodes_own_map():
    from textgames.frozen_lake.solver import FrozenLakeSolver

    scenario = SCENARIOS["frozen-lake-slippery"]
    env, exact = scenario.make(), ExactValues.of(scenario)
    for seed in range(20_000, 20_005):
        env.reset(seed=seed)
        game, state = env.unwrapped.game, env.unwrapped.state
        assert exact.optimal(seed) == FrozenLakeSolver(game).optimal_value(state, scenario.horizon)
        assert 0 <= exact.uniform(seed) <= exact.optimal(seed) <= 1


def test_the_uniform_policys_value_agrees_with_playing_it():
    scenario = SCENARIOS["frozen-lake-slippery"]
    env, rng, seed = scenario.make(), np.random.default_rng(0), 20_003
    total, plays = 0.0, 3000
    for play in range(plays):
        env.reset(seed=play, options={"layout_seed": seed})
        over = False
        while not over:
            _, reward, terminated, truncated, _ = env.step(("left", "down", "right", "up")[rng.integers(4)])
            total += reward
            over = terminated or truncated
    expected = ExactValues.of(scenario).uniform(seed)
    assert total / plays == pytest.approx(expected, abs=4 * (expected / plays) ** 0.5)


def test_snakes_references_are_the_agents_own_scores_and_are_kept(workplace, monkeypatch):
    scenario = SCENARIOS["snake"]
    said: list[str] = []
    first = References(None, said.append).scale(scenario, [40_000, 40_001])
    again = References(None, said.append).scale(scenario, [40_001, 40_000])
    assert first.random.tolist() == again.random.tolist()[::-1]
    assert first.optimal.tolist() == again.optimal.tolist()[::-1]
    assert first.optimal_source == "planner (search)"
    monkeypatch.setattr("benchmark.score.references.PLAY_LIMIT", 1)
    assert References(None, said.append).scale(scenario, [40_777, 40_778]).optimal is None
    assert "add --agent random to the run" in said[-2]


def test_references_come_from_the_results_where_the_agents_played(tmp_path):
    results = read_results([write_run(tmp_path / "r", {"random": [0.0, 1.0], "planner": [2.0, 5.0]}, "snake")])
    scale = References(results).scale(SCENARIOS["snake"], [40_001, 40_000])
    assert (scale.random.tolist(), scale.optimal.tolist()) == ([1.0, 0.0], [5.0, 2.0])
    rows = {row["agent"]: row for row in score_rows(results, References(results))}
    assert rows["planner"]["normalized"]["value"] == 1.0
    assert rows["random"]["normalized"]["value"] == 0.0


def test_the_overall_score_is_the_mean_over_scenarios_of_whole_agents(tmp_path):
    write_run(tmp_path / "lake", {"a": [1.0] * 4, "b": [0.0] * 4})
    write_run(tmp_path / "ice", {"a": [1.0] * 4}, "frozen-lake-slippery")
    results = read_results([tmp_path / "lake"])
    rows = overall_rows(results, References(results))
    assert [(row["agent"], row["rank"], row["scenarios"]) for row in rows] == [("a", 1, 1), ("b", 2, 1)]
    assert rows[0]["normalized"]["value"] == pytest.approx(1.0)
    assert results.scenarios["frozen-lake"].name == "frozen-lake"
    assert score_rows(results, References(results))[0]["reference"]["optimal_source"] == "exact (value iteration)"


def test_pairs_are_formed_by_seed(tmp_path):
    one = write_run(tmp_path / "one", {"a": [3.0, 1.0, 2.0]})
    two = write_run(tmp_path / "two", {"b": [1.0, 1.0]})
    results = read_results([one, two])
    assert paired_differences(results, "a", "b", "frozen-lake").tolist() == [2.0, 0.0]
    (row,) = compare(results, ["b", "a"])
    assert (row["a"], row["b"], row["pairs"], row["difference"]["value"]) == ("b", "a", 2, -1.0)


def test_a_clear_difference_is_told_and_noise_is_not(tmp_path):
    rng = np.random.default_rng(0)
    base = rng.normal(size=50)
    returns = {"good": base + 1 + rng.normal(0, 0.5, 50), "base": base, "same": base + rng.normal(0, 0.5, 50)}
    results = read_results([write_run(tmp_path / "r", {name: values.tolist() for name, values in returns.items()})])
    rows = {(row["a"], row["b"]): row for row in compare(results, ["good", "base", "same"])}
    assert rows["good", "base"]["p_value"] < 0.001
    assert rows["good", "base"]["difference"]["low"] > 0
    assert rows["good", "base"]["episodes_needed"] < 20
    assert rows["base", "same"]["p_value"] > 0.05


def test_ranks_without_figures():
    rows = [{"agent": "a", "mean_return": None, "episodes": 0, "planned": 5, "unscored": 0, "rank": None}]
    rank_rows(rows)
    assert rows[0]["rank"] is None


def test_seeds_as_ranges():
    assert to_ranges([5, 3, 4, 9, 4]) == [[3, 5], [9, 9]]
    assert list(expand_ranges([[3, 5], [9, 9]])) == [3, 4, 5, 9]
    assert list(expand_ranges(to_ranges(range(100)))) == list(range(100))
    with pytest.raises(ValueError, match="seeds must be"):
        expand_ranges([[0, MAX_SEEDS + 2]])


def test_a_plan_survives_its_manifest():
    plan = Plan.of(("a", "b"), find_scenarios(["all"]), 7, 3)
    again = Plan.from_manifest({"kind": RUN_KIND, **json.loads(json.dumps(plan.to_json()))})
    assert list(plan.episodes()) == list(again.episodes())
    assert {name: s._replace(kwargs=dict(s.kwargs)) for name, s in plan.scenarios.items()} == again.scenarios
    assert plan.total == 6 * 2 * 7 + 2 * 7
    assert len({key.agents for key in plan.episodes() if key.scenario == "snake-duel"}) == 2
