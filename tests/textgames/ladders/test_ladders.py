"""Levels are settings of a game's own generator and a horizon, by one number, wherever a game is made."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import textgames
from agents.episode import EpisodeTask
from agents.load import load_agent
from agents.loop.rollout import rollout
from textgames import SCENARIOS, Scenario, known_scenario
from textgames.by_game import ByGame
from textgames.solving.blind import blind_play, found_by, shipped_rows
from textgames.yardsticks import find_yardstick

WITH_LEVELS = [name for name, scenario in SCENARIOS.items() if scenario.ladder is not None]
IDS = {SCENARIOS[name].env_id: name for name in WITH_LEVELS}


def levels_of(name: str) -> tuple[Scenario, ...]:
    return SCENARIOS[name].levels


@pytest.mark.parametrize("name", WITH_LEVELS)
def test_a_ladder_has_ten_levels_that_get_harder_evenly(name):
    ladder = SCENARIOS[name].ladder
    assert ladder is not None
    assert len(ladder.levels) == 10
    assert len({tuple(level.settings) for level in ladder.levels}) == 1  # a level leaves nothing to the one before it
    tolerances = np.array([level.tolerance for level in ladder.levels], dtype=float)
    steps = tolerances[1:] / tolerances[:-1]
    assert (steps < 0.97).all(), f"{name}: a level is no harder than the one before it: {tolerances}"
    assert (steps > 0.6).all(), f"{name}: a level is much harder than the one before it: {tolerances}"


@pytest.mark.parametrize("name", WITH_LEVELS)
def test_a_level_has_room_between_blind_play_and_the_optimum(name):
    for scenario in levels_of(name):
        play, rung = blind_play(scenario), scenario.rung
        assert play is not None
        assert rung is not None
        assert rung.optimum is not None
        assert play.standard_error < (rung.optimum - play.value) / 10


def test_every_level_ships_its_blind_play():
    for name in WITH_LEVELS:
        for scenario in levels_of(name):
            about = found_by(scenario.game(), scenario.horizon)
            assert "level" not in about["settings"]  # but the level's own, so that a row outlives its ladder
            assert shipped_rows()[scenario.name].items() >= about.items(), "python docs/tools/measure_blind.py"


@pytest.mark.parametrize("env_id", IDS)
def test_every_environment_makes_the_same_level(env_id):
    scenario = levels_of(IDS[env_id])[2]
    by_number = gym.make(env_id, level=3).unwrapped
    by_scenario = scenario.make().unwrapped
    batch: Any = gym.make_vec(env_id, num_envs=2, vectorization_mode="vector_entry_point", level=3)
    everybody, in_turn = textgames.parallel_env(env_id, level=3), textgames.aec_env(env_id, level=3)
    for env in (by_number, by_scenario, batch, everybody, in_turn):
        assert env.rules.max_steps == scenario.horizon
        assert env.game.made_with == scenario.kwargs
    assert by_number.reset(seed=5)[0] == by_scenario.reset(seed=5)[0] == batch.reset(seed=5)[0][0]
    assert textgames.game_of(env_id, level=3).made_with == scenario.kwargs
    assert textgames.game_of(env_id, level=0).made_with == {}


@pytest.mark.parametrize("env_id", IDS)
def test_whoever_says_how_long_is_heard(env_id):
    assert gym.make(env_id, level=3, max_episode_steps=2).spec.max_episode_steps == 2
    assert textgames.parallel_env(env_id, level=3, max_cycles=2).rules.max_steps == 2
    assert gym.make(env_id, level=0).unwrapped.rules.max_steps == gym.make(env_id).unwrapped.rules.max_steps


@pytest.mark.parametrize("name", WITH_LEVELS)
def test_levels_are_scenarios_by_name(name):
    base = SCENARIOS[name]
    for number, scenario in enumerate(levels_of(name), 1):
        assert scenario == known_scenario(f"{name}-level-{number}")
        assert (scenario.level_number, scenario.first_seed, scenario.training) == (number, base.first_seed, False)
        assert scenario.ladder_name == name
        assert scenario.levels == ()
        assert scenario.game() is scenario.game()
        if base.has_twins:
            assert scenario.has_twins, f"the vocabulary doesn't cover {scenario.name}"
            twin = known_scenario(f"{name}-level-{number}-twin-2")
            assert twin == scenario.twin(2) == base.twin(2).level(number)
            assert twin is not None
            assert (twin.plain_name, twin.ladder_name) == (scenario.name, f"{name}-twin-2")
            assert twin.twin(0) == scenario


@pytest.mark.parametrize(
    "name",
    [
        *("frozen-lake-level-0", "frozen-lake-level-11", "frozen-lake-level-03", "frozen-lake-level-", "level-3"),
        *("frozen-lake-big-level-1", "frozen-lake-twin-2-level-3", "frozen-lake-level-3-twin-0", "snake-level-1"),
    ],
)
def test_what_is_no_level_is_no_scenario(name):
    assert known_scenario(name) is None


@pytest.mark.parametrize("name", WITH_LEVELS)
def test_the_planner_gets_the_optimum_of_a_level_and_of_its_twin(name):
    scenario = levels_of(name)[1]

    def returns(of: Scenario) -> list[float]:
        found = rollout(load_agent("planner"), [EpisodeTask.of(of, of.seed(k)) for k in range(12)])
        return [sum(episode.returns.values()) for episode in sorted(found, key=lambda episode: episode.seed)]

    own = returns(scenario)
    if scenario.has_twins:
        assert returns(scenario.twin(1)) == own
    yardstick, rung = find_yardstick(scenario.game()), scenario.rung
    if yardstick is None:  # the number is hidden: luck makes a return of what is the optimum over all numbers
        assert rung is not None
        assert np.mean(own) == pytest.approx(rung.optimum, abs=0.6)
        return
    env = scenario.make().unwrapped
    values = []
    for number in range(12):
        env.reset(seed=scenario.seed(number))
        values.append(yardstick.value(env.state, scenario.horizon, env.game.players[0]))
    assert own == pytest.approx(values)


def test_a_level_decides_its_settings_and_leaves_the_text_alone():
    with pytest.raises(TypeError, match=r"level=3 of FrozenLake decides frozen_probability, size; leave one"):
        gym.make("TextFrozenLake-v0", level=3, size=4, frozen_probability=0.5)
    with pytest.raises(TypeError, match="decides frozen_probability, size"):
        SCENARIOS["frozen-lake"].make(level=3)
    assert "Grid" not in gym.make("TextFrozenLake-v0", level=3, grid=False).reset(seed=0)[0]


@pytest.mark.parametrize(
    ("env_id", "level", "message"),
    [
        ("TextFrozenLake-v0", 11, "level must be a whole number from 1 to 10, got 11"),
        ("TextFrozenLake-v0", -1, "level must be a whole number from 1 to 10, got -1"),
        ("TextFrozenLake-v0", "3", "level must be a whole number from 1 to 10, got '3'"),
        ("TextSnake-v0", 2, "Snake has no levels: give it a ladder with textgames.register_ladder"),
    ],
)
def test_what_is_no_level_is_said(env_id, level, message):
    for make in (gym.make, textgames.parallel_env, textgames.game_of):
        with pytest.raises(ValueError, match=message):
            make(env_id, level=level)
    with pytest.raises(ValueError, match="snake has no levels"):
        SCENARIOS["snake"].level(1)


class OwnLake(textgames.frozen_lake.FrozenLake):  # type: ignore[name-defined]
    """Somebody's game, whose ladder isn't that of the game that it is made of."""


def test_a_game_of_ones_own_gets_a_ladder(tmp_path, monkeypatch):
    monkeypatch.setattr("textgames.ladders._FILES", ByGame[Path]())
    file = tmp_path / "own.toml"
    rows = "".join(f"[[levels]]\nsettings = {{ size = {size} }}\nhorizon = {2 * size}\n" for size in (2, 4))
    file.write_text(f'scenario = "mine"\n{rows}')
    assert textgames.ladders.ladder_of(OwnLake) is None
    textgames.register_ladder(OwnLake, file)
    ladder = textgames.ladders.ladder_of(OwnLake)
    assert ladder is not None
    assert [level.horizon for level in ladder.levels] == [4, 8]
    assert ladder.levels[0].tolerance is None  # nobody has measured it


def test_a_game_has_what_its_nearest_base_class_has():
    class Narrower(OwnLake):
        """One that nothing is registered of."""

    registered: ByGame[str] = ByGame({"textgames.frozen_lake:FrozenLake": "textgames:__name__"})
    assert registered.find(Narrower) == "textgames"
    registered.register(OwnLake, "textgames.tsmg:__name__")
    assert registered.find(Narrower) == "textgames.tsmg"
    assert registered.find(OwnLake.__base__) == "textgames"
    registered.register(OwnLake, "textgames:__doc__")
    assert registered.find(Narrower) == textgames.__doc__, "the latest registration counts"
    assert registered.find(textgames.snake.Snake) is None  # type: ignore[attr-defined]
