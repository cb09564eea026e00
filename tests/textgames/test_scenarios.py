"""The scenarios are the table of the specification, and can be made."""

import gymnasium as gym
import numpy as np
import pytest

import textgames
from textgames import SCENARIOS, SUITES, TRAINING_SEEDS, Scenario
from textgames.environments.parallel import TextParallelEnv
from textgames.frozen_lake import FrozenLake
from textgames.scenarios import ABOUT_SUITES, LITTLE_HEADROOM
from textgames.snake import Snake
from textgames.solving.value_iteration import ValueIteration

TABLE = {
    # name: id, horizon, first seed, training
    "frozen-lake": ("TextFrozenLake-v0", 8, 10_000, True),
    "frozen-lake-slippery": ("TextFrozenLake-v0", 15, 20_000, False),
    "frozen-lake-big": ("TextFrozenLake-v0", 20, 30_000, False),
    "snake": ("TextSnake-v0", 8, 40_000, True),
    "snake-long": ("TextSnake-v0", 20, 50_000, False),
    "snake-poison": ("TextSnake-v0", 20, 60_000, False),
    "snake-duel": ("TextSnake-v0", 30, 70_000, False),
}


def test_the_papers_table():
    table = {name: (s.env_id, s.horizon, s.first_seed, s.training) for name, s in SCENARIOS.items()}
    assert dict(list(table.items())[: len(TABLE)]) == TABLE
    assert [name for name, (*_, training) in table.items() if training] == ["frozen-lake", "snake"]
    assert SCENARIOS["frozen-lake"].kwargs["frozen_probability"] == 0.8
    assert not SCENARIOS["frozen-lake"].kwargs["is_slippery"]
    for name, settings in (("frozen-lake-slippery", (4, 0.9, True)), ("frozen-lake-big", (8, 0.8, False))):
        kwargs = SCENARIOS[name].kwargs
        assert (kwargs["size"], kwargs["frozen_probability"], kwargs["is_slippery"]) == settings
    poison = SCENARIOS["snake-poison"].kwargs
    assert (poison["num_apples"], poison["apple_reward"], poison["num_bananas"]) == (3, -1.0, 3)


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name.startswith("frozen-lake")])
def test_a_lake_can_be_crossed_often_enough_to_measure_anything(name):
    """The large lake was slippery once, and perfect play reached its goal in one episode of 2,000."""
    scenario = SCENARIOS[name]
    game = scenario.game()
    assert isinstance(game, FrozenLake)
    solver = ValueIteration(game)
    starts = [game.initial_state(np.random.default_rng(scenario.seed(episode))) for episode in range(50)]
    assert np.mean([solver.value(start, scenario.horizon, "player_0") for start in starts]) > 0.3


def test_no_evaluation_seed_is_a_training_seed():
    seeds = [s.seed(episode) for s in SCENARIOS.values() for episode in range(10_000)]
    assert len(set(seeds)) == len(seeds)
    assert not set(seeds) & set(TRAINING_SEEDS)


@pytest.mark.parametrize("name", SCENARIOS)
def test_made_with_its_horizon(name):
    scenario = SCENARIOS[name]
    env = scenario.make()
    assert env.unwrapped.rules.max_steps == scenario.horizon
    assert isinstance(env, gym.Env) == (len(scenario.game().players) == 1)
    assert scenario.make(max_steps=3).unwrapped.rules.max_steps == 3
    assert scenario.parallel_env().game.players == scenario.game().players


def test_suites_name_scenarios():
    assert SUITES["paper"] == ("frozen-lake", "frozen-lake-slippery", "snake", "snake-poison")
    assert set(SUITES["all"]) == set(SCENARIOS) - LITTLE_HEADROOM
    assert {"blackjack", "prisoners-dilemma-tft"} == LITTLE_HEADROOM
    assert not any(LITTLE_HEADROOM & set(names) for names in SUITES.values())
    assert set(SUITES) == set(ABOUT_SUITES) == {"paper", "planning", "exploration", "strategy", "social", "all"}
    for suite, names in SUITES.items():
        assert len(names) >= 4
        assert len(set(names)) == len(names)
        assert set(names) <= set(SCENARIOS), suite
        assert ABOUT_SUITES[suite]


class TwoPlayers(Snake):
    """A game of two players without a setting that says so."""

    def __init__(self, *, width: int = 6) -> None:
        super().__init__(width=width, num_players=2, num_opponents=0)


def test_a_scenarios_environment_goes_by_the_players_of_its_game():
    textgames.register("TestTwoPlayers-v0", TwoPlayers)
    scenario = Scenario("two", "TestTwoPlayers-v0", {"width": 7}, 5, 0)
    env = scenario.make(max_steps=4)
    assert env.possible_agents == ["player_0", "player_1"]
    assert (env.rules.max_steps, env.game.width) == (4, 7)
    assert isinstance(SCENARIOS["snake"].make(num_players=2, num_opponents=0), TextParallelEnv)
    assert SCENARIOS["snake"].make(max_episode_steps=3, render_mode="ansi").spec.max_episode_steps == 3


def test_scenarios_are_read_only():
    with pytest.raises(TypeError):
        SCENARIOS["mine"] = SCENARIOS["snake"]  # type: ignore[index]
    with pytest.raises(TypeError):
        SCENARIOS["snake"].kwargs["num_apples"] = 1  # type: ignore[index]
