"""From records to rows: counts, ranks, references, comparisons; checked by hand."""

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from agents.episode import Episode, Step
from agents.turn import Turn, Usage
from benchmark import evaluate
from benchmark.errors import UsageError
from benchmark.runs.manifest import MANIFEST_VERSION, RUN_KIND
from benchmark.runs.plan import PAPER_SCENARIOS, Plan, find_scenarios
from benchmark.runs.record import to_line
from benchmark.score.comparison import board_family, compare_best, compared, further_differences, paired_differences
from benchmark.score.luck import Corrected
from benchmark.score.overall import Overall, overall_scenarios
from benchmark.score.references import References
from benchmark.score.results import COLUMNS, Cell, ResultColumns, read_columns
from benchmark.score.scores import above_blind, cost, rank, score_rows
from benchmark.show.board import leaderboard_tables
from benchmark.show.document_of import results_document
from tests.benchmark.helpers import change_manifest, lines_of, write_lines
from textgames.scenarios import SCENARIOS
from textgames.solving.blind import blind_play


def compare(results, agents):
    return compared(results, combinations(agents, 2))[0]


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
            step = Step(0, "player_0", "", Turn("x", usage=Usage(10, 5)), "left", False, "no_tag", value)
            me, paid, won = {"player_0": name}, {"player_0": value}, {"player_0": value > 0}
            about = {"error": "down" if (name, k) in errors else None}
            about["measured"] = {"seconds": 2.0, "cached_tokens": [4, 0]}
            seed = SCENARIOS[scenario].seed(k)
            lines.append(to_line(Episode(scenario, seed, None, me, (step, step), paid, won, True, False, **about)))
    (folder / "episodes.jsonl").write_bytes(b"".join(lines))
    return folder


def board(returns):
    """Results of hand-made returns: ``{scenario: {agent: [return of episode 0, 1, ...]}}``."""
    manifest = {"kind": RUN_KIND, "textbench": {"version": "1"}, "matchups": []}
    results = ResultColumns(sources=[(Path("made"), manifest)], source_complete=[True])
    for scenario, agents in returns.items():
        results.scenarios[scenario] = SCENARIOS[scenario]
        for agent, values in agents.items():
            results.agents[agent] = {"name": agent, "spec": agent, "kind": "scripted", "settings": {}}
            results.agent_source[agent] = 0
            cell = results.cells[agent, scenario] = Cell(planned=len(values))
            for k, value in enumerate(values):
                row = {"seed": SCENARIOS[scenario].seed(k), "score": value, "success": value > 0}
                for name in COLUMNS:
                    cell.columns[name].append(row.get(name, 1.0))
    return results


def overall(results):
    overall = Overall(results, References(results))
    names, rows = overall.names, overall.rows()
    return names, {row["agent"]: row for row in rows}


def test_a_cell_is_counted_by_hand(tmp_path):
    results = read_columns([write_run(tmp_path / "r", {"a": [1.0, 0.0, 1.0, 1.0]})])
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


def test_only_whole_cells_are_ranked_and_what_cant_be_told_apart_shares_a_place(tmp_path):
    returns = {"a": [1.0] * 20, "b": [1.0] * 19 + [0.0], "c": [0.0] * 20, "late": [1.0] * 19, "down": [1.0] * 20}
    results = read_columns([write_run(tmp_path / "r", returns, planned=20, errors={("down", 1)})])
    rows = {row["agent"]: row for row in score_rows(results)}
    places = {name: (row["rank"], row["tied"]) for name, row in rows.items()}
    assert places == {
        **{"a": (1, True), "b": (1, True), "c": (3, False)},
        **{"late": (None, False), "down": (None, False)},
    }
    assert rows["down"]["errors"] == {"down": 1}
    assert rows["down"]["episodes"] == 19
    assert list(rows)[:3] == ["a", "b", "c"]
    assert not results.complete


def test_agents_share_the_rank_of_the_best_one_that_they_cant_be_told_apart_from():
    tests = []

    def told_apart(a, b):
        tests.append((a, b))
        return abs(ord(a) - ord(b)) > 1  # neighbours can't be told apart

    places = rank({"d": 1.0, "a": 4.0, "b": 3.0, "e": 0.0, "c": 2.0}, told_apart)
    assert places == {"a": (1, True), "b": (1, True), "c": (3, True), "d": (3, True), "e": (5, False)}
    assert tests == [("a", "b"), ("a", "c"), ("c", "d"), ("c", "e")]
    # two whose intervals don't meet never share a rank, though neither is the best one
    apart = rank({"a": 4.0, "b": 3.0, "c": 2.0}, lambda a, b: False, lambda a, b: {a, b} == {"b", "c"})
    assert apart == {"a": (1, True), "b": (1, True), "c": (3, False)}


def test_ten_starts_rank_unlike_agents_of_a_large_board_and_three_rank_none():
    """On ten starts 2/2^10 is 0.13 after correction for all comparisons, but intervals don't meet."""
    few = score_rows(board({"frozen-lake": {"a": [1.0] * 3, "b": [0.0] * 3}}))
    assert [(row["rank"], row["tied"]) for row in few] == [(1, True), (1, True)]
    names = [name for name, one in SCENARIOS.items() if one.game().return_range == (0.0, 1.0)][:2]
    played = {agent: [float(agent < "i")] * 10 for agent in "abcdefghijklmnop"}
    rows = score_rows(board(dict.fromkeys(["frozen-lake", *names], played)))
    assert {(row["agent"], row["rank"]) for row in rows if row["agent"] in "ap"} == {("a", 1), ("p", 9)}


def test_who_is_above_by_other_seeds_than_the_common_ones_is_told_apart_by_none():
    """As with ``--until``, where agents have different numbers of episodes: on the common ones the second is better."""
    longer, better = [0.0] * 50 + [1.0] * 150, [1.0] * 35 + [0.0] * 15
    rows = score_rows(board({"frozen-lake": {"longer": longer, "better": better}}))
    assert {row["agent"]: (row["rank"], row["tied"]) for row in rows} == {"better": (1, True), "longer": (1, True)}
    rows = score_rows(board({"frozen-lake": {"longer": longer[:50], "better": better}}))
    assert [(row["agent"], row["rank"]) for row in rows] == [("better", 1), ("longer", 2)]


def test_an_agent_without_a_scored_episode_has_no_figures_and_one_episode_is_above_nothing(tmp_path):
    results = read_columns([write_run(tmp_path / "r", {"a": [1.0]}, errors={("a", 0)})])
    (row,) = score_rows(results, References(results))
    assert (row["episodes"], row["unscored"], row["rank"], row["mean_return"]) == (0, 1, None, None)
    for episodes, above in ((1, None), (30, True)):
        results = board({"frozen-lake": {"a": [1.0] * episodes}})
        assert score_rows(results, References(results))[0]["above_blind"] is above


def test_runs_are_told_apart_by_their_names_and_paired_by_seed(tmp_path):
    paths = [write_run(tmp_path / name, {"a": own}) for name, own in (("one", [3.0, 1.0, 2.0]), ("two", [1.0, 1.0]))]
    results = read_columns(paths)
    assert [row["agent"] for row in score_rows(results)] == list(results.agents) == ["a", "two/a"]
    assert paired_differences(results, "a", "two/a", "frozen-lake").tolist() == [2.0, 0.0]
    (row,) = compare(results, ["two/a", "a"])
    assert (row["a"], row["b"], row["pairs"], row["difference"]["value"]) == ("two/a", "a", 2, -1.0)
    change_manifest(paths[1], lambda manifest: manifest["scenarios"]["frozen-lake"].update(horizon=80))
    with pytest.raises(UsageError, match="defines another scenario under the name 'frozen-lake'"):
        read_columns(paths)


def test_a_models_size_and_seconds_of_a_core_have_a_table(tmp_path):
    """Records of before have no such costs; an agent's row of sizes has the mean over all of its scenarios."""
    folder = write_run(tmp_path / "r", {"small": [1.0, 0.0], "large": [1.0, 1.0], "script": [0.0, 0.0]})
    assert [row["cpu_seconds"] for row in score_rows(read_columns([folder]))] == [None] * 3

    def with_sizes(manifest):
        for card, size in zip(manifest["agents"], (219200, 630167424, None), strict=True):
            card["settings"] = {"model_parameters": size}

    change_manifest(folder, with_sizes)
    records = lines_of(folder)
    for record, seconds in zip(records[:4], (1.0, 2.0, 4.0, 5.0), strict=True):  # the script's aren't known
        record["measured"]["cpu_seconds"] = {"player_0": seconds}
    write_lines(folder, records)
    document = results_document(read_columns([folder]), max_episodes=0)
    known = {row["agent"]: row["cpu_seconds"] for row in document["scores"]}
    assert known == {"small": 1.5, "large": 4.5, "script": None}
    (table,) = [table for table in leaderboard_tables(document) if table.key == "sizes"]
    shown = [(row[0], row[1], row[-1]) for row in table.texts]
    assert shown == [("small", "219k", "1.500"), ("large", "630M", "4.500")]
    alone = results_document(read_columns([folder], agents=["small", "script"]), max_episodes=0)
    assert "sizes" not in alone, "one size is no scale"


def test_a_frozen_lake_reference_is_the_optimum_of_the_episodes_own_map():
    from textgames.solving.value_iteration import ValueIteration

    scenario = SCENARIOS["frozen-lake-slippery"]
    env, seeds = scenario.make(), range(20_000, 20_005)
    blind, reference = References().scale(scenario, seeds)
    assert (reference.kind, reference.source, blind.exact, blind.error) == ("optimal", "value iteration", True, 0.0)
    for seed, least, most in zip(seeds, blind.values, reference.values, strict=True):
        env.reset(seed=seed)
        game, state = env.unwrapped.game, env.unwrapped.state
        assert most == pytest.approx(ValueIteration(game).value(state, scenario.horizon, "player_0"), abs=1e-12)
        assert 0 <= least <= most <= 1


def test_snakes_reference_is_the_planners_own_score_and_is_kept(workplace, monkeypatch):
    monkeypatch.setenv("TEXTBENCH_CACHE_DIR", str(workplace / "cache"))  # nothing is kept yet, whatever ran before
    scenario = SCENARIOS["snake"]
    said: list[str] = []
    first = References(None, said.append).scale(scenario, [40_000, 40_001])
    again = References(None, said.append).scale(scenario, [40_001, 40_000])
    assert first.reference.values.tolist() == again.reference.values.tolist()[::-1]
    assert (first.reference.kind, first.reference.source) == ("reference", "planner (search)")
    assert len(said) == 1
    # nobody knows what blind play is worth from one start: its mean stands in, with how sure it is
    play = blind_play(scenario)
    assert first.blind.values.tolist() == [play.value] * 2
    assert (first.blind.error, first.blind.exact) == (play.standard_error, False)
    monkeypatch.setattr("benchmark.score.references.PLAY_LIMIT", 1)
    assert References(None, said.append).scale(scenario, [40_777, 40_778]).reference is None
    assert "add --agent planner to the run" in said[-1]


def test_a_hidden_start_is_hidden_from_both_ends(workplace):
    """The optimum of a bandit is a mean over all arms that there may be, and so is what blind play gets."""
    scenario = SCENARIOS["bandit-bayes"]
    blind, reference = References().scale(scenario, [scenario.seed(k) for k in range(20)])
    assert len(set(reference.values)) == len(set(blind.values)) == 1
    assert (reference.kind, blind.exact, blind.values[0]) == ("optimal", True, pytest.approx(scenario.horizon / 2))
    # against a player of the same seeds, each episode counts as it is
    scenario = SCENARIOS["bandit-context"]
    blind, reference = References().scale(scenario, [scenario.seed(k) for k in range(5)])
    assert (reference.kind, blind.exact) == ("reference", True)
    assert len(set(blind.values)) == 5


def test_references_come_from_the_results_where_the_agents_played(tmp_path):
    results = read_columns([write_run(tmp_path / "r", {"random": [0.0, 1.0], "planner": [2.0, 5.0]}, "snake")])
    scale = References(results).scale(SCENARIOS["snake"], [40_001, 40_000])
    assert scale.reference.values.tolist() == [5.0, 2.0]
    rows = {row["agent"]: row for row in score_rows(results, References(results))}
    assert rows["planner"]["normalized"]["value"] == 1.0
    blind = rows["random"]["blind"]["value"]
    assert rows["random"]["normalized"]["value"] == pytest.approx((0.5 - blind) / (3.5 - blind))


def test_an_extra_scenario_changes_nobodys_overall_score_and_one_that_is_lacking_takes_ones_own():
    lake, ice, big = "frozen-lake", "frozen-lake-slippery", "frozen-lake-big"
    played = {lake: {"a": [1.0] * 40, "b": [0.0] * 40, "c": [1.0, 0.0] * 20}, ice: {"a": [1.0] * 40, "b": [0.0] * 40}}
    results = board(played)
    before = names, rows = overall(results)
    assert names == [lake, ice]
    assert (rows["a"]["rank"], rows["b"]["rank"]) == (1, 2)
    assert (rows["c"]["rank"], rows["c"]["normalized"], rows["c"]["lacks"]) == (None, None, [ice])
    again = overall(board(played | {big: {"b": [1.0] * 40}}))
    assert again == before
    # whoever has unscored episodes in a scenario lacks it; the scenario stays, since most were to play it
    results.cells["a", ice].errors["down"] += 1
    names, rows = overall(results)
    assert (names, rows["a"]["lacks"]) == ([lake, ice], [ice])


def test_the_overall_score_is_over_the_papers_scenarios_where_most_agents_have_them():
    everyone = {agent: [0.0] * 2 for agent in "abc"}
    played = dict.fromkeys((*PAPER_SCENARIOS, "snake-long"), everyone)
    assert overall_scenarios(board(played)) == list(PAPER_SCENARIOS)
    del played["snake"]
    assert set(overall_scenarios(board(played))) == {*PAPER_SCENARIOS, "snake-long"} - {"snake"}


@pytest.mark.slow
def test_a_large_board_is_compared_in_linear_time_with_the_family_of_all_pairs():
    rng = np.random.default_rng(21)
    agents = [f"agent {place}" for place in range(40)]
    results = board({"frozen-lake": {agent: rng.binomial(1, 0.5, 20).astype(float).tolist() for agent in agents}})
    rows = compare_best(results, agents, {})
    assert len(rows) == 8 * 7 // 2 + 8 * 32 + 31
    assert board_family(results) == 40 * 39 // 2
    everything = {(row["a"], row["b"]): row for row in compare(results, agents)}
    for row in rows:
        assert row["p_value"] == everything[row["a"], row["b"]]["p_value"]
        assert row["p_holm"] >= everything[row["a"], row["b"]]["p_holm"]
    few = board({"frozen-lake": {agent: [1.0, 0.0, 1.0] for agent in "abcdef"}})
    assert compare_best(few, "abcdef", {}) == compare(few, "abcdef")


@pytest.mark.parametrize(("unequal", "told"), [(1, False), (3, False), (5, False), (6, True), (9, True)])
def test_the_interval_of_a_few_differences_of_one_sign_says_what_their_test_says(unequal, told):
    (row,) = compare(board({"snake": {"a": [0.0] * 12, "b": [1.0] * unequal + [0.0] * (12 - unequal)}}), ["a", "b"])
    assert (row["difference"]["high"] < 0, row["p_value"] < 0.05) == (told, told)


def test_a_score_that_is_above_0_by_rounding_alone_is_not_above_blind_play():
    """A random player's 1.39e-16 on sliding-puzzle-far was."""
    for low in (None, 1.2e-16, -0.1):
        assert above_blind({"value": 1.39e-16, "low": low, "high": None if low is None else 0.3}) is False
    assert above_blind({"value": 0.3, "low": 1e-17, "high": 0.5}) is False
    assert above_blind({"value": 0.3, "low": 0.01, "high": 0.5}) is True
    assert above_blind(None) is None


def test_one_more_pair_may_differ_by_the_ends_of_both_returns():
    first, second = (Corrected(np.zeros(20), ends, 1.0, 1.0) for ends in ((0.0, 10.0), (1.0, 5.0)))
    assert further_differences(first, second) == (-5.0, 9.0)
    assert further_differences(second, first) == (-9.0, 5.0)
    assert further_differences(first, second._replace(ends=None)) == further_differences(None, second) == ()


def test_what_is_not_known_of_0_is_in_the_interval_of_a_score(monkeypatch):
    results, scale = board({"frozen-lake": {"a": [1.0, 0.0] * 15}}), References.scale
    widths = []
    for error in (0.0, 0.3):

        def off_by(self, scenario, seeds, error=error):
            found = scale(self, scenario, seeds)
            return found._replace(blind=found.blind._replace(error=error))

        monkeypatch.setattr(References, "scale", off_by)
        (row,) = score_rows(results, References(results))
        widths.append(row["normalized"]["high"] - row["normalized"]["low"])
    assert widths[1] > 1.5 * widths[0]


def test_equal_episodes_leave_room_for_another_one_and_a_reference_is_certain(workplace):
    returns = {"random": [-1.0, 0.0] * 10, "planner": [2.0, 4.0] * 10, "same": [2.0] * 20}
    snakes = board({"snake": returns})
    rows = {row["agent"]: row for row in score_rows(snakes, References(snakes))}
    assert rows["same"]["mean_return"]["low"] < 2.0 < rows["same"]["mean_return"]["high"]
    assert rows["planner"]["normalized"] == {"value": 1.0, "low": None, "high": None}  # by definition
    # cliff walking states no range; a player that slips in one of a hundred mostly doesn't in three
    results = evaluate(["planner", "random"], scenarios="cliff-walking", episodes=3, quiet=True)
    row = next(row for row in results.leaderboard().scores if row["agent"] == "planner")
    for name in ("mean_return", "luck_free_return", "normalized"):
        assert row[name]["low"] < row[name]["value"] == row[name]["high"]
    (pair,) = results.compare("planner", "random").rows
    assert pair["difference"]["low"] < 0 < pair["difference"]["value"] < pair["difference"]["high"]
