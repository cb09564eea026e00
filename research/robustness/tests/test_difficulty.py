"""Levels are as difficult as is told, and the simulated players of the staircase are what they are said to be."""

from collections.abc import Mapping

import numpy as np
import pytest

from research.robustness.ladders import staircase as simulation
from research.robustness.ladders.difficulty import Guessing, Listed, measure
from research.robustness.ladders.measure import FOLDER, level_measured, shown, table
from research.robustness.ladders.staircase import LEVELS, every_level, figures, players, slipping, staircase
from textgames import SCENARIOS, TSMG
from textgames.exploration.guess_number import GuessNumber, interval_value
from textgames.exploration.guessing import LOST_GUESSES

ME = "player_0"
CHEAP = {"frozen-lake": 2, "taxi": 1, "sliding-puzzle": 3, "sokoban": 1, "guess-number": 6}
"""How many of a ladder's levels are measured again in a second or two."""


@pytest.mark.parametrize(("name", "levels"), CHEAP.items())
def test_levels_are_as_they_are_measured(name, levels):
    """A changed game, generator or blind player is to be measured: python -m research.robustness.ladders.measure."""
    assert set(CHEAP) == {name for name, scenario in SCENARIOS.items() if scenario.levels}
    for scenario in SCENARIOS[name].levels[:levels]:
        rung = scenario.rung
        assert rung is not None
        told = {key: value for key, value in rung._asdict().items() if key not in ("settings", "horizon")}
        measured = shown(level_measured(scenario))
        assert measured == {key: value for key, value in told.items() if value is not None}, scenario.name


def test_tables_are_written_as_they_are():
    for name in CHEAP:
        ladder = SCENARIOS[name].ladder
        assert ladder is not None
        rows = [{key: value for key, value in level._asdict().items() if value is not None} for level in ladder.levels]
        assert table(name, rows) == (FOLDER / f"{name}.toml").read_text()


class Sign(TSMG[str]):
    """One of two doors is open and a sign says which; two corridors of ``length`` cells lead there."""

    actions = ("left", "right")

    def __init__(self, length: int = 1) -> None:
        self._length = length

    def initial_state(self, rng: np.random.Generator) -> str:
        return self.actions[int(rng.integers(2))] + "0"

    def outcomes(self, state: str, joint_action: Mapping[str, str]) -> list[tuple[float, str, dict[str, float], bool]]:
        way, walked = state[:-1], int(state[-1])
        on = walked + 1 if joint_action[ME] == way else walked
        return [(1.0, f"{way}{on}", {ME: float(on == self._length)}, on == self._length)]

    def transition(
        self, state: str, joint_action: Mapping[str, str], rng: np.random.Generator
    ) -> tuple[str, dict[str, float], bool]:
        return self.outcomes(state, joint_action)[0][1:]

    def observe(self, state: str, player: str) -> str:
        return state

    def instructions(self, player: str) -> str:
        return "left or right"


def test_tolerance_is_where_half_of_the_headroom_is_left():
    """One move: with a share of slips the door is found with 1 - slips / 2, and blind play finds it half the time."""
    solved = Listed(Sign(), 1, starts=40)
    for slips in (0.0, 0.3, 1.0):
        assert solved.value(slips) == pytest.approx(1 - slips / 2)
    told = measure(Sign(), 1, blind=0.5, starts=40)
    assert told.tolerance == pytest.approx(0.5, abs=1e-4)
    assert (told.optimum, told.states, told.depth) == (1.0, 1, 1)
    right = 1 - 0.2 / 2  # and in a corridor three steps have to be right, with no move to spare or with one
    assert Listed(Sign(3), 3, 10).value(0.2) == pytest.approx(right**3)
    assert Listed(Sign(3), 4, 10).value(0.2) == pytest.approx(right**3 * (1 + 3 * (1 - right)))


def test_guessing_is_solved_with_slips():
    for numbers, guesses in ((9, 3), (20, 6)):
        solved = Guessing(GuessNumber(numbers=numbers, max_guesses=guesses))
        assert solved.value(0.0) == pytest.approx(interval_value(numbers, guesses, LOST_GUESSES))
        wrong = 1 - 1 / numbers
        random = -sum(wrong**guess for guess in range(guesses)) - LOST_GUESSES * wrong**guesses
        assert solved.value(1.0) == pytest.approx(random)
        assert solved.value(0.0) > solved.value(0.2) > solved.value(1.0)


@pytest.fixture(autouse=True)
def _few_lakes(monkeypatch):
    monkeypatch.setattr(simulation, "LAKES", 100)


@pytest.mark.slow
def test_players_are_at_their_levels():
    """Half of the headroom is kept between the levels beside it, on average over many episodes."""
    rng = np.random.default_rng(0)
    for player in players():
        kept = {level: np.mean([player.play(level, rng) for _ in range(600)]) for level in LEVELS}
        below = [kept[level] for level in LEVELS if level <= player.level - 1.2]
        above = [kept[level] for level in LEVELS if level >= player.level + 1.2]
        assert all(share > 0.35 for share in below), (player.name, kept)
        assert all(share < 0.65 for share in above), (player.name, kept)


@pytest.mark.slow
def test_the_lakes_chances_give_what_slipping_costs():
    """At a level whose tolerance is the share of slips, half is kept."""
    (player,) = slipping((0.233,))  # that of level 4
    rng = np.random.default_rng(1)
    kept = np.mean([player.play(4, rng) for _ in range(4000)])
    assert abs(player.level - 4) < 0.1
    assert abs(kept - 0.5) < 0.06


def test_both_ways_play_as_many_episodes():
    player = next(iter(players()))
    counted = []

    def counting(level: int, rng: np.random.Generator) -> float:
        counted.append(level)
        return player.play(level, rng)

    for way in (staircase, every_level):
        counted.clear()
        way(player._replace(play=counting), 40, np.random.default_rng(0))
        assert len(counted) == 40
        assert set(counted) == set(LEVELS)


def test_figures_are_of_errors_on_the_ladder():
    player = next(iter(players()))
    found = [staircase(player, 30, np.random.default_rng(seed)) for seed in range(4)]
    told = figures(found, player.level)
    assert told["error"] >= abs(told["bias"])
    assert 0 <= told["coverage"] <= 1
