"""Levels are settings of a game's own generator and a horizon, by one number, wherever a game is made."""

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
from textgames.frozen_lake import FrozenLake
from textgames.solving.blind import blind_play
from textgames.yardsticks import find_yardstick

WITH_LEVELS = [name for name, scenario in SCENARIOS.items() if scenario.ladder is not None]


@pytest.mark.parametrize("name", WITH_LEVELS)
def test_a_ladder_has_ten_levels_that_get_harder_evenly_and_have_room_above_blind_play(name):
    ladder = SCENARIOS[name].ladder
    assert ladder is not None
    assert len(ladder.levels) == 10
    assert len({tuple(level.settings) for level in ladder.levels}) == 1  # a level leaves nothing to the one before it
    tolerances = np.array([level.tolerance for level in ladder.levels], dtype=float)
    steps = tolerances[1:] / tolerances[:-1]
    assert (steps < 0.97).all(), f"{name}: a level is no harder than the one before it: {tolerances}"
    assert (steps > 0.6).all(), f"{name}: a level is much harder than the one before it: {tolerances}"
    for scenario in SCENARIOS[name].levels:
        play, rung = blind_play(scenario), scenario.rung
        assert play is not None
        assert rung is not None
        assert rung.optimum is not None
        assert play.standard_error < (rung.optimum - play.value) / 10


@pytest.mark.parametrize("name", WITH_LEVELS)
def test_every_environment_makes_the_same_level_and_hears_how_long_it_shall_be(name):
    env_id, scenario = SCENARIOS[name].env_id, SCENARIOS[name].levels[2]
    by_number, by_scenario = gym.make(env_id, level=3).unwrapped, scenario.make().unwrapped
    batch: Any = gym.make_vec(env_id, num_envs=2, vectorization_mode="vector_entry_point", level=3)
    everybody, in_turn = textgames.parallel_env(env_id, level=3), textgames.aec_env(env_id, level=3)
    for env in (by_number, by_scenario, batch, everybody, in_turn):
        assert env.rules.max_steps == scenario.horizon
        assert env.game.made_with == scenario.kwargs
    assert by_number.reset(seed=5)[0] == by_scenario.reset(seed=5)[0] == batch.reset(seed=5)[0][0]
    assert textgames.game_of(env_id, level=0).made_with == {}
    assert gym.make(env_id, level=3, max_episode_steps=2).spec.max_episode_steps == 2
    assert textgames.parallel_env(env_id, level=3, max_cycles=2).rules.max_steps == 2
    assert gym.make(env_id, level=0).unwrapped.rules.max_steps == gym.make(env_id).unwrapped.rules.max_steps


@pytest.mark.parametrize("name", WITH_LEVELS)
def test_levels_are_scenarios_by_name(name):
    base = SCENARIOS[name]
    for number, scenario in enumerate(base.levels, 1):
        assert scenario == known_scenario(f"{name}-level-{number}")
        assert (scenario.level_number, scenario.first_seed, scenario.training) == (number, base.first_seed, False)
        assert (scenario.ladder_name, scenario.levels) == (name, ())
        if base.has_twins:
            assert scenario.has_twins, f"the vocabulary doesn't cover {scenario.name}"
            twin = known_scenario(f"{name}-level-{number}-twin-2")
            assert twin == scenario.twin(2) == base.twin(2).level(number)
            assert twin is not None
            assert (twin.plain_name, twin.ladder_name) == (scenario.name, f"{name}-twin-2")
            assert twin.twin(0) == scenario


@pytest.mark.parametrize("end", ["level-0", "level-11", "level-03", "level-", "twin-2-level-3", "level-3-twin-0"])
def test_what_is_no_level_is_no_scenario(end):
    assert known_scenario(f"frozen-lake-{end}") is None
    assert known_scenario("snake-level-1") is known_scenario("frozen-lake-big-level-1") is None


@pytest.mark.parametrize("name", WITH_LEVELS)
def test_the_planner_gets_the_optimum_of_a_level_and_of_its_twin(name):
    scenario = SCENARIOS[name].levels[1]

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


class OwnLake(FrozenLake):
    """Somebody's game, whose ladder isn't that of the game that it is made of."""


class Narrower(OwnLake):
    """One that nothing is registered of."""


def test_a_game_has_what_its_nearest_base_class_has():
    registered: ByGame[str] = ByGame({"textgames.frozen_lake:FrozenLake": "textgames:__name__"})
    assert registered.find(Narrower) == "textgames"
    registered.register(OwnLake, "textgames.tsmg:__name__")
    assert registered.find(Narrower) == "textgames.tsmg"
    assert registered.find(FrozenLake) == "textgames"
    registered.register(OwnLake, "textgames:__doc__")
    assert registered.find(Narrower) == textgames.__doc__, "the latest registration counts"
    assert registered.find(textgames.TSMG) is None
