"""Levels: a player's level is found without bias in few episodes, and a run over the levels says so."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
from benchmark.runs.plan import Plan, find_scenarios, scenario_from_json, scenario_to_json
from benchmark.runs.replay import replay
from benchmark.score.beside import Rung, headroom_of, rungs_of, weights_of
from benchmark.score.levels import BEYOND, LAPSE, SPREADS, STEP, Fit, Found, Seen
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
    assert rung is not None
    assert rung.tolerance is not None
    return benchmark.evaluate(
        {"slipping": Slipping(rung.tolerance), "planner": "planner", "random": "random"},
        scenarios=["frozen-lake"],
        levels="1-7",
        episodes=EPISODES,
        out=tmp_path_factory.mktemp("ladders") / "run",
        quiet=True,
    )


def rows_of(results: benchmark.Results, ladder: str) -> dict[str, dict[str, Any]]:
    rows = results.document(max_episodes=0)["ladders"]
    return {row["agent"]: dict(row) for row in rows if row["scenario"] == ladder}


@pytest.mark.slow
def test_everybody_is_where_they_belong(results):
    rows = rows_of(results, "frozen-lake")
    assert rows["planner"]["beyond"] == "above"
    assert rows["random"]["beyond"] == "below"
    assert all((row["first"], row["last"], row["episodes"]) == (1, 7, EPISODES) for row in rows.values())
    assert [rung["kept"]["value"] for rung in rows["planner"]["rungs"]] == pytest.approx([1.0] * 7, abs=0.05)
    slipping = rows["slipping"]
    # it slips as often as the best player may at level 5, but plays as if it didn't
    assert 2.5 < slipping["level"]["value"] < 6.5
    assert slipping["level"]["low"] < slipping["level"]["value"] < slipping["level"]["high"]


@pytest.mark.slow
def test_episodes_are_put_where_they_tell_most(results):
    rungs = rows_of(results, "frozen-lake")["planner"]["rungs"]
    assert rungs[-1]["episodes"] > 10  # nobody learns anything of it at the easy ones
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
    text, rows = str(results.leaderboard()), rows_of(results, "frozen-lake")
    assert "kept at each level" in text
    assert f">7 at least {rows['planner']['level']['low']:.1f}" in text
    assert f"<1 at most {rows['random']['level']['high']:.1f}" in text


def test_one_level_alone_is_a_scenario_like_others(tmp_path):
    found = benchmark.evaluate(
        ["planner", "random"], scenarios=["frozen-lake"], level=2, episodes=8, out=tmp_path / "run", quiet=True
    )
    document = found.document(max_episodes=0)
    assert document["overall_scenarios"] == ["frozen-lake-level-2"]
    assert find_scenarios(["frozen-lake-level-2"])["frozen-lake-level-2"] == SCENARIOS["frozen-lake"].levels[1]
    assert "ladders" not in document


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


def test_the_levels_of_a_twin_are_a_ladder_of_their_own(tmp_path):
    found = benchmark.evaluate(
        ["planner"], scenarios=["frozen-lake"], levels="3-4", twins=1, episodes=6, out=tmp_path / "run", quiet=True
    )
    document = found.document(max_episodes=0)
    assert [row["scenario"] for row in document["ladders"]] == ["frozen-lake", "frozen-lake-twin-1"]
    assert {row["scenario"] for row in document["scores"]} == {
        f"frozen-lake-level-{level}{twin}" for level in (3, 4) for twin in ("", "-twin-1")
    }


def test_best_play_keeps_everything_whatever_its_start_is_worth(tmp_path):
    found = benchmark.evaluate(
        ["planner"], scenarios=["taxi"], levels="1-2", episodes=8, out=tmp_path / "run", quiet=True
    )
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


def test_levels_that_contradict_each_other_are_refused(tmp_path):
    def choose(**options: Any) -> list[str]:
        told = RunOptions(given=frozenset(options), **options)
        return list(with_levels(choose_scenarios(told), told, print).scenarios)

    assert read_levels(" 1 - 10 ") == read_levels("01-10") == "1-10"
    assert choose(scenarios=("frozen-lake",), level=3) == ["frozen-lake-level-3"]
    assert choose(scenarios=("frozen-lake",), level=0) == ["frozen-lake"]
    assert choose(scenarios=("frozen-lake",), levels="2-3") == ["frozen-lake-level-2", "frozen-lake-level-3"]
    for options, message in (
        ({"level": 3, "levels": "1-10"}, "give it without --level"),
        ({"until": 0.1, "levels": "1-10"}, "give it without --until"),
        ({"level": 12}, "frozen-lake has the levels 1 to 10, got 12"),
        ({"levels": "5-11"}, "frozen-lake has the levels 1 to 10, got 11"),
        ({"level": 2, "scenarios": ("blackjack", "snake")}, "no levels of snake, blackjack; scenarios"),
    ):
        with pytest.raises(UsageError, match=message):
            choose(**{"scenarios": ("frozen-lake",), **options})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="--episodes 10 or more"):
        benchmark.evaluate(
            ["random"], scenarios=["frozen-lake"], levels="1-10", episodes=9, out=tmp_path / "few", quiet=True
        )


@pytest.mark.parametrize("text", ["", "3", "0-4", "4-4", "5-2", "a-b", "1-", "1-2-3", "1.5-3"])
def test_what_is_no_range_of_levels_is_said(text, textbench):
    with pytest.raises(ValueError, match="levels are two numbers"):
        read_levels(text)
    ran = textbench("run", "--agent", "random", f"--levels={text or 'x'}", "--scenario", "frozen-lake")
    assert ran.code == 2
    assert "--levels: levels are two numbers from 1 with a dash between" in ran.err
    assert "Traceback" not in ran.err


OWN_GAME = """
import textgames
from textgames import TSMG

class Doors(TSMG):
    actions = ("left", "right")
    def __init__(self, *, doors=2):
        self.doors = doors
    def initial_state(self, rng):
        return (int(rng.integers(self.doors)), 0)
    def transition(self, state, joint_action, rng):
        at = state[1] + (joint_action["player_0"] == "right")
        return (state[0], at), {"player_0": float(at == state[0])}, True
    def observe(self, state, player):
        return f"Door {state[0]} is open."
    def instructions(self, player):
        return "Go left or right."

textgames.register("Doors-v0", Doors, max_steps=1)
textgames.register_ladder(Doors, "doors.toml")
"""


@pytest.mark.slow
def test_a_game_of_ones_own_is_played_at_its_levels(textbench, short_search):
    Path("own_doors.py").write_text(OWN_GAME)
    levels = "".join(f"[[levels]]\nsettings = {{ doors = {doors} }}\nhorizon = 1\n" for doors in (2, 3))
    Path("doors.toml").write_text(f'scenario = "own_doors:Doors-v0"\n{levels}')
    ran = textbench(
        *("run", "--agent", "random", "--scenario", "own_doors:Doors-v0", "--levels", "1-2", "--episodes", 8),
        *("--out", "run", "--json"),
    )
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    names = {row["scenario"]: row["episodes"] for row in document["scores"]}
    assert names == {"own_doors:Doors-v0-level-1": 5, "own_doors:Doors-v0-level-2": 3}
    assert "ladders" not in document  # nobody knows its optimum


Play = Callable[[int, np.random.Generator], float]
LEVELS = range(1, 11)
EVEN = dict.fromkeys(LEVELS, 1.0)


def coin(theta: float, spread: float) -> Play:
    """A player whose episodes are won with the chance that the model has it, but for lapses."""
    return lambda level, rng: float(rng.random() < 1 / (1 + np.exp((level - theta) / spread)))


def fitted(seen: dict[int, list[float]]) -> Fit:
    return Fit({level: Seen(values) for level, values in seen.items()}, LEVELS[0], LEVELS[-1])


def staircase(play: Play, episodes: int, rng: np.random.Generator, batch: int = 4) -> Found:
    seen = {level: [play(level, rng)] for level in LEVELS}
    for _ in range((episodes - len(LEVELS)) // batch):
        level = fitted(seen).next_level(batch, EVEN)
        seen[level] += [play(level, rng) for _ in range(batch)]
    return fitted(seen).found()


def every_level(play: Play, episodes: int, rng: np.random.Generator) -> Found:
    return fitted({level: [play(level, rng) for _ in range(episodes // len(LEVELS))] for level in LEVELS}).found()


def errors(found: list[Found], theta: float) -> np.ndarray:
    return np.array([one.level for one in found]) - theta


@pytest.mark.slow
@pytest.mark.parametrize(("theta", "spread"), [(5.3, 1.0), (2.4, 0.6)])
def test_the_staircase_is_unbiased_and_its_interval_holds_the_level(theta, spread):
    rng = np.random.default_rng(3)
    found = [staircase(coin(theta, spread), 50, rng) for _ in range(40)]
    off = errors(found, theta)
    assert abs(off.mean()) < 0.15 + 2.6 * off.std() / np.sqrt(len(off))
    inside = [(one.low is None or one.low <= theta) and (one.high is None or theta <= one.high) for one in found]
    assert np.mean(inside) > 0.87
    assert np.sqrt((off**2).mean()) < 0.75


@pytest.mark.slow
def test_it_takes_fewer_episodes_than_playing_every_level():
    rng = np.random.default_rng(4)
    near = errors([staircase(coin(5.3, 0.6), 50, rng) for _ in range(40)], 5.3)
    even = errors([every_level(coin(5.3, 0.6), 50, rng) for _ in range(40)], 5.3)
    assert (near**2).mean() < 0.6 * (even**2).mean()


def test_a_level_beyond_the_ladder_has_one_end():
    below, above = (fitted({level: [value] * 3 for level in LEVELS}).found() for value in (0.0, 1.0))
    assert below.level < 1
    assert below.low is None
    assert below.high is not None
    assert below.high < 2.5
    assert above.level > 10
    assert above.high is None
    assert above.low is not None
    assert above.low > 9


@pytest.mark.parametrize(("wins", "left_out"), [(0, (None, 0.05)), (5, (0.025, 0.025)), (10, (0.05, None))])
def test_ends_leave_out_what_they_say(wins, left_out):
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


def test_wide_returns_make_wide_intervals():
    rng = np.random.default_rng(5)

    def noisy(deviation: float) -> Found:
        seen = {level: list((level < 6) + deviation * rng.standard_normal(6)) for level in LEVELS}
        return fitted(seen).found()

    calm, wild = noisy(0.1), noisy(2.0)
    assert calm.low is not None
    assert calm.high is not None
    assert wild.high is None or wild.low is None or wild.high - wild.low > 2 * (calm.high - calm.low)


def test_the_next_episodes_are_where_the_level_may_be():
    """And where they count: a level whose episodes say little isn't played, though it is as near."""
    fit = fitted({level: [1.0] * 3 if level <= 6 else [0.0] * 3 for level in LEVELS})
    assert fit.next_level(4, EVEN) in (6, 7)
    assert fit.next_level(4, {**EVEN, 6: 0.01}) == 7
    assert fit.next_level(4, {**EVEN, 7: 0.01}) == 6


def test_episodes_of_no_weight_tell_nothing():
    told = {level: Seen([1.0] * 4 if level <= 4 else [0.0] * 4) for level in LEVELS}
    with_more = Fit({**told, 9: Seen([1.0] * 40, weight=1e-9)}, 1, 10).found()
    assert with_more.level == pytest.approx(Fit({**told, 9: Seen([0.0])}, 1, 10).found().level, abs=0.3)
