"""The scenarios are the table of the specification, and can be made."""

import gymnasium as gym
import pytest

from textgames import SCENARIOS, TRAINING_SEEDS

TABLE = {
    # name: id, horizon, first seed, training
    "frozen-lake": ("TextFrozenLake-v0", 8, 10_000, True),
    "frozen-lake-slippery": ("TextFrozenLake-v0", 15, 20_000, False),
    "frozen-lake-big": ("TextFrozenLake-v0", 15, 30_000, False),
    "snake": ("TextSnake-v0", 8, 40_000, True),
    "snake-long": ("TextSnake-v0", 20, 50_000, False),
    "snake-poison": ("TextSnake-v0", 20, 60_000, False),
    "snake-duel": ("TextSnake-v0", 30, 70_000, False),
}


def test_the_table() -> None:
    assert {name: (s.env_id, s.horizon, s.first_seed, s.training) for name, s in SCENARIOS.items()} == TABLE
    assert SCENARIOS["frozen-lake"].kwargs["frozen_probability"] == 0.8
    assert not SCENARIOS["frozen-lake"].kwargs["is_slippery"]
    for name, size in (("frozen-lake-slippery", 4), ("frozen-lake-big", 8)):
        kwargs = SCENARIOS[name].kwargs
        assert (kwargs["size"], kwargs["frozen_probability"], kwargs["is_slippery"]) == (size, 0.9, True)
    poison = SCENARIOS["snake-poison"].kwargs
    assert (poison["num_apples"], poison["apple_reward"], poison["num_bananas"]) == (3, -1.0, 3)


def test_no_evaluation_seed_is_a_training_seed() -> None:
    seeds = [s.seed(episode) for s in SCENARIOS.values() for episode in range(10_000)]
    assert len(set(seeds)) == len(seeds)
    assert not set(seeds) & set(TRAINING_SEEDS)


@pytest.mark.parametrize("name", SCENARIOS)
def test_made_with_its_horizon(name: str) -> None:
    scenario = SCENARIOS[name]
    env = scenario.make()
    assert env.unwrapped.rules.max_steps == scenario.horizon
    assert isinstance(env, gym.Env) == (name != "snake-duel")
    assert scenario.make(max_steps=3).unwrapped.rules.max_steps == 3
    assert scenario.parallel_env().game.players == scenario.game().players


def test_scenarios_are_read_only() -> None:
    with pytest.raises(TypeError):
        SCENARIOS["mine"] = SCENARIOS["snake"]  # type: ignore[index]
    with pytest.raises(TypeError):
        SCENARIOS["snake"].kwargs["num_apples"] = 1  # type: ignore[index]
