"""Levels: a player's level is found without bias in few episodes, and a run over the levels says so."""

from pathlib import Path

import numpy as np
import pytest

import benchmark
from agents.baselines.random import RandomPlayer
from agents.baselines.scripted_player import Choice, ScriptedPlayer
from agents.baselines.search import PlannerPlayer
from agents.turn import TurnRequest
from benchmark.errors import UsageError
from benchmark.play.agents.choice import choose_scenarios, with_levels
from benchmark.play.options import RunOptions, read_levels
from benchmark.play.until import BATCH
from benchmark.runs.folder import RunFolder
from benchmark.runs.manifest import read_manifest
from benchmark.runs.plan import Plan, scenario_from_json, scenario_to_json
from benchmark.runs.replay import replay
from benchmark.score.beside import Rung, headroom_of, rungs_of, weights_of
from benchmark.score.levels import BEYOND, LAPSE, SPREADS, STEP, Fit, Seen
from benchmark.score.references import References
from tests.benchmark.helpers import counted
from textgames import SCENARIOS

EPISODES = 30


class Slipping(ScriptedPlayer):
    """The planner, of whose moves a share goes wrong."""

    name = "slipping"

    def __init__(self, slips: float) -> None:
        self._slips, self._planner, self._random = slips, PlannerPlayer(), RandomPlayer()

    def choose(self, request: TurnRequest) -> Choice:
        slipped = np.random.default_rng([*request.seed, 7]).random() < self._slips
        return (self._random if slipped else self._planner).choose(request)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    rung = SCENARIOS["frozen-lake"].levels[4].rung
    return benchmark.evaluate(
        {"slipping": Slipping(rung.tolerance), "planner": "planner", "random": "random"},
        scenarios=["frozen-lake"],
        levels="1-7",
        episodes=EPISODES,
        out=tmp_path_factory.mktemp("ladders") / "run",
        quiet=True,
    )


def rows_of(results):
    return {row["agent"]: row for row in results.document(max_episodes=0)["ladders"]}


@pytest.mark.slow
def test_everybody_is_where_they_belong_and_plays_where_it_tells_most(results):
    rows = rows_of(results)
    assert (rows["planner"]["beyond"], rows["random"]["beyond"]) == ("above", "below")
    assert all((row["first"], row["last"], row["episodes"]) == (1, 7, EPISODES) for row in rows.values())
    rungs = rows["planner"]["rungs"]
    assert [rung["kept"]["value"] for rung in rungs] == pytest.approx([1.0] * 7, abs=0.05)
    # it slips as often as the best player may at level 5, but plays as if it didn't
    level = rows["slipping"]["level"]
    assert 2.5 < level["value"] < 6.5
    assert level["low"] < level["value"] < level["high"]
    assert rungs[-1]["episodes"] > 10  # nothing is learnt of it at the easy ones
    assert sum(rung["episodes"] for rung in rungs[:4]) < 10
    plan = Plan.from_manifest(RunFolder.open(results.folders[0]).manifest)
    for matchup, seeds in plan.seeds.items():
        first = plan.scenarios[matchup.scenario].first_seed
        assert list(seeds) == list(range(first, first + len(seeds)))
        assert len(seeds) % BATCH in (1, (1 + EPISODES - 7) % BATCH)


def test_a_level_counts_nowhere_twice_and_has_a_table(results):
    document = results.document(max_episodes=0)
    assert document["overall_scenarios"] == []
    assert all(row["rank"] is None for row in document["overall"])
    assert {row["level"] for row in document["scores"]} == set(range(1, 8))
    text, rows = str(results.leaderboard()), rows_of(results)
    assert "kept at each level" in text
    assert f">7 at least {rows['planner']['level']['low']:.1f}" in text
    assert f"<1 at most {rows['random']['level']['high']:.1f}" in text


def test_a_run_ends_in_the_levels(textbench):
    arguments = ("--agent", "planner", "--agent", "random", "--scenario", "frozen-lake", "--scenario", "cliff-walking")
    ran = textbench("run", *arguments, "--levels", "1-4", "--episodes", 8, "--out", "run")
    assert ran.code == 0
    assert "these have no levels and are not played: cliff-walking" in ran.err
    assert "frozen-lake level" in ran.out
    assert "The level is where half of what is between 0 and 1 is kept" in ran.out
    assert "success" not in ran.out  # a mean over levels that nobody chose
    lake = ("--agent", "random", "--scenario", "frozen-lake")
    dry = textbench("run", *lake, "--levels", "2-5", "--episodes", 40, "--dry-run")
    assert dry.code == 0
    assert "40 episodes, at most" in dry.out
    assert "where they tell most" in dry.out


@pytest.mark.slow
def test_a_run_goes_on_as_if_it_had_never_stopped(textbench):
    command = ("run", "--agent", "random", "--scenario", "frozen-lake", "--levels", "1-6", "--quiet")
    assert textbench(*command, "--episodes", 22, "--out", "whole").code == 0
    assert textbench(*command, "--episodes", 14, "--out", "parts").code == 0
    assert textbench("resume", "parts", "--episodes", 22, "--quiet").code == 0
    assert counted("parts") == counted("whole")
    # what was noted and not yet played is played by a resume
    lines = Path("parts/episodes.jsonl").read_bytes().splitlines(keepends=True)
    Path("parts/episodes.jsonl").write_bytes(b"".join(lines[:-3]))
    assert textbench("resume", "parts", "--quiet").code == 0
    assert counted("parts") == counted("whole")


def test_a_manifest_keeps_the_settings_of_its_levels(results):
    """So that a run can be read and played again when its ladder has been measured anew."""
    manifest = read_manifest(results.folders[0])
    told = manifest["scenarios"]["frozen-lake-level-3"]
    assert told["level"] == 3
    assert told["kwargs"] == dict(SCENARIOS["frozen-lake"].levels[2].kwargs)
    assert "level" not in scenario_to_json(SCENARIOS["frozen-lake"])
    old = scenario_from_json("frozen-lake-level-3", {**told, "kwargs": {"size": 3}, "horizon": 5})
    assert old.rung is None
    assert old.level_number == 3
    assert 0.2 < headroom_of(old, References()) < 0.8
    folder = RunFolder.open(results.folders[0])
    plan = Plan.from_manifest(folder.manifest)
    for record in list(folder.records())[::23]:
        assert replay(record, plan.scenarios[record.scenario]).episode.returns == record.returns


def test_the_levels_of_a_twin_are_a_ladder_of_their_own(workplace):
    found = benchmark.evaluate("planner", scenarios="frozen-lake", levels="3-4", twins=1, episodes=6, quiet=True)
    assert [row["scenario"] for row in found.document(max_episodes=0)["ladders"]] == [
        *("frozen-lake", "frozen-lake-twin-1")
    ]


def test_best_play_keeps_everything_whatever_its_start_is_worth(workplace):
    found = benchmark.evaluate("planner", scenarios="taxi", levels="1-2", episodes=8, quiet=True)
    assert np.std(found.columns.cells["planner", "taxi-level-1"].returns()[1]) > 0.5
    for rung in rungs_of(found.columns, References(), "planner", "taxi").values():
        assert rung.values == pytest.approx(1.0)


def test_weights_are_the_inverse_of_the_variances_where_returns_vary_alike():
    returns = np.array([-1.0, 0.0, 2.0])
    headrooms = {1: 0.8, 2: 0.5, 3: 0.2}
    rungs = {level: Rung(SCENARIOS["frozen-lake"], room, 1 - returns / room) for level, room in headrooms.items()}
    weights = weights_of(rungs)
    products = [weights[level] * rung.values.var() for level, rung in rungs.items()]
    assert products == pytest.approx([rungs[1].values.var()] * 3)


def test_levels_that_contradict_each_other_are_refused():
    for options, message in (
        ({"level": 3, "levels": "1-10"}, "give it without --level"),
        ({"until": 0.1, "levels": "1-10"}, "give it without --until"),
        ({"level": 12}, "frozen-lake has the levels 1 to 10, got 12"),
        ({"levels": "5-11"}, "frozen-lake has the levels 1 to 10, got 11"),
        ({"level": 2, "scenarios": ("blackjack", "snake")}, "no levels of snake, blackjack; scenarios"),
    ):
        with pytest.raises(UsageError, match=message):
            chosen(**{"scenarios": ("frozen-lake",), **options})


def chosen(**options):
    told = RunOptions(given=frozenset(options), **options)
    return list(with_levels(choose_scenarios(told), told, print).scenarios)


def test_what_is_no_range_of_levels_is_said(textbench):
    assert read_levels(" 1 - 10 ") == read_levels("01-10") == "1-10"
    assert chosen(scenarios=("frozen-lake",), level=3) == ["frozen-lake-level-3"]
    assert chosen(scenarios=("frozen-lake",), levels="2-3") == ["frozen-lake-level-2", "frozen-lake-level-3"]
    for text in ("", "3", "0-4", "4-4", "5-2", "a-b", "1-2-3", "1.5-3"):
        with pytest.raises(ValueError, match="levels are two numbers"):
            read_levels(text)
    for levels, said in (("5-2", "--levels: levels are two numbers from 1"), ("1-10", "--episodes 10 or more")):
        ran = textbench("run", "--agent", "random", "--levels", levels, "--scenario", "frozen-lake", "--episodes", 9)
        assert (ran.code, said in ran.err) == (2, True)


LEVELS = range(1, 11)
EVEN = dict.fromkeys(LEVELS, 1.0)


def fitted(seen: dict[int, list[float]]) -> Fit:
    return Fit({level: Seen(values) for level, values in seen.items()}, LEVELS[0], LEVELS[-1])


@pytest.mark.slow
@pytest.mark.parametrize(("theta", "spread"), [(5.3, 1.0), (2.4, 0.6)])
def test_the_staircase_is_unbiased_and_its_interval_holds_the_level(theta, spread):
    """Of players whose episodes are won with the chance that the model has it, but for lapses."""
    rng = np.random.default_rng(3)

    def play(level, episodes):
        return [float(rng.random() < 1 / (1 + np.exp((level - theta) / spread))) for _ in range(episodes)]

    off, inside = [], []
    for _ in range(40):
        seen = {level: play(level, 1) for level in LEVELS}
        for _ in range(10):
            level = fitted(seen).next_level(4, EVEN)
            seen[level] += play(level, 4)
        one = fitted(seen).found()
        off.append(one.level - theta)
        inside.append((one.low or -np.inf) <= theta <= (one.high or np.inf))
    assert abs(np.mean(off)) < 0.15 + 2.6 * np.std(off) / np.sqrt(len(off))
    assert np.mean(inside) > 0.87
    assert np.sqrt(np.mean(np.square(off))) < 0.75


@pytest.mark.parametrize(("wins", "left_out"), [(0, (None, 0.05)), (5, (0.025, 0.025)), (10, (0.05, None))])
def test_ends_leave_out_what_they_say_and_a_level_beyond_the_ladder_has_one(wins, left_out):
    """Of the posterior, here by the formula, of coins whose dispersion is theirs."""
    found = fitted({level: [float(level <= wins)] * 3 for level in LEVELS}).found()
    thetas = np.arange(LEVELS[0] - BEYOND, LEVELS[-1] + BEYOND + STEP / 2, STEP)
    curves = [1 / (1 + np.exp((level - thetas[:, None]) / SPREADS)) for level in LEVELS]
    chances = [LAPSE + (1 - 2 * LAPSE) * curve for curve in curves]
    likelihood = np.prod([p if level <= wins else 1 - p for level, p in zip(LEVELS, chances, strict=True)], axis=0) ** 3
    mass = likelihood.sum(axis=1) / likelihood.sum()
    for end, share, beyond in ((found.low, left_out[0], np.less), (found.high, left_out[1], np.greater)):
        assert (end is None) == (share is None)
        if end is not None:
            assert mass[beyond(thetas, end)].sum() == pytest.approx(share, abs=0.006)


def test_one_bad_episode_at_an_easy_level_pulls_nobody_down():
    seen = {level: [1.0] * 4 if level <= 5 else [0.0] * 4 for level in LEVELS}
    sure = fitted(seen).found()
    lapsed = fitted({**seen, 1: [1.0, 1.0, 1.0, 0.0]}).found()
    assert sure.level == pytest.approx(5.5, abs=0.1)
    assert abs(lapsed.level - sure.level) < 0.4
    terrible = fitted({**seen, 1: [1.0, 1.0, 1.0, -3.0]}).found()  # much worse than play that doesn't read
    assert terrible.level > 3


def test_the_next_episodes_are_where_the_level_may_be():
    """And where they count: a level whose episodes say little isn't played, though it is as near, and tells nothing."""
    fit = fitted({level: [1.0] * 3 if level <= 6 else [0.0] * 3 for level in LEVELS})
    assert fit.next_level(4, EVEN) in (6, 7)
    assert fit.next_level(4, {**EVEN, 6: 0.01}) == 7
    assert fit.next_level(4, {**EVEN, 7: 0.01}) == 6
    told = {level: Seen([1.0] * 4 if level <= 4 else [0.0] * 4) for level in LEVELS}
    with_more = Fit({**told, 9: Seen([1.0] * 40, weight=1e-9)}, 1, 10).found()
    assert with_more.level == pytest.approx(Fit({**told, 9: Seen([0.0])}, 1, 10).found().level, abs=0.3)
