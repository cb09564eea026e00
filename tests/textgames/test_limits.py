"""``max_steps`` is the limit, and specs tell it; Gymnasium's ``max_episode_steps`` cuts shorter, in batches too."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import flatten, flatten_space, unflatten
from gymnasium.wrappers import TimeAwareObservation

import textgames
from agents import EpisodeTask
from textgames import SCENARIOS
from textgames.environments.solo import TextGameEnv
from textgames.environments.spaces import ObservationText
from textgames.environments.vector import TextVectorEnv

SHIPPED = [env_id for env_id in textgames.registered_ids() if not env_id.startswith("Test")]


def others(env_id: str) -> dict[str, Any]:
    return {"opponents": "random"} if len(textgames.game_of(env_id).players) > 1 else {}


def single(env: gym.Env[Any, Any]) -> tuple[int, bool, bool]:
    """The steps of an episode of unreadable responses, and whether it ended by the rules, or by the limit alone."""
    env.reset(seed=0)
    for steps in range(1, 1000):
        _, _, terminated, truncated, _ = env.step("?")
        if terminated or truncated:
            return steps, bool(terminated), bool(truncated and not terminated)
    return 1000, False, False


def batch(env: Any) -> tuple[int, bool, bool]:
    env.reset(seed=0)
    for steps in range(1, 1000):
        _, _, (terminated,), (truncated,), _ = env.step(["?"])
        if terminated or truncated:
            return steps, bool(terminated), bool(truncated)
    return 1000, False, False


@pytest.mark.parametrize("env_id", SHIPPED)
def test_gymnasiums_limit_cuts_episodes_shorter_in_a_single_environment_and_in_a_batch(env_id):
    settings = others(env_id)
    registered = gym.make(env_id, **settings)
    own = registered.spec.max_episode_steps  # type: ignore[union-attr]
    assert own is not None
    assert single(registered)[0] <= own
    for limit in (1, 3, own + 70):
        one = gym.make(env_id, max_episode_steps=limit, **settings)
        many: Any = gym.make_vec(
            env_id, num_envs=1, max_episode_steps=limit, vectorization_mode="vector_entry_point", **settings
        )
        assert one.spec.max_episode_steps == many.spec.max_episode_steps == limit  # type: ignore[union-attr]
        played = single(one)
        assert played == batch(many) == batch(many)  # the second episode has as many steps
        assert played[0] <= min(limit, own)
        assert played[1] or own < limit or played[0] == limit


@pytest.mark.parametrize("env_id", ["TextFrozenLake-v0", "TextGathering-v0"])
@pytest.mark.parametrize("limit", [3, 60])
def test_max_steps_makes_episodes_shorter_and_longer_and_is_told(env_id, limit):
    settings = {"invalid_action": "default", **others(env_id)}
    env = gym.make(env_id, max_steps=limit, **settings)
    assert env.spec is not None
    assert env.spec.max_episode_steps == limit
    assert single(env) == single(env.spec.make()) == (limit, False, True)


def test_no_limit():
    env = gym.make("TextFrozenLake-v0", max_steps=None, invalid_action="default")
    assert isinstance(env, TextGameEnv)
    assert env.spec is not None
    assert env.spec.max_episode_steps is None
    assert single(env)[0] == 1000


@pytest.mark.parametrize("limit", [0, -2, 2.5, "8"])
def test_other_limits_are_refused(limit):
    with pytest.raises(ValueError, match=r"max_steps must be a whole number .*, got"):
        gym.make("TextFrozenLake-v0", max_steps=limit)
    with pytest.raises(ValueError, match=r"max_episode_steps must be a whole number .*, got"):
        TextVectorEnv("textgames.frozen_lake:FrozenLake", max_episode_steps=limit)


def test_a_spec_makes_its_environment_again():
    for env_id in ("TextFrozenLake-v0", "TextTicTacToe-v0"):
        cases: tuple[dict[str, Any], ...] = ({}, {"max_episode_steps": 77}, {"max_steps": 5})
        for asked in cases:
            spec = gym.make(env_id, **asked, **others(env_id)).spec
            assert spec is not None
            again = spec.make()
            assert again.spec is not None
            assert again.spec.max_episode_steps == spec.max_episode_steps
            assert again.unwrapped.rules == gym.make(spec).unwrapped.rules  # type: ignore[attr-defined]
            batched = gym.make_vec(spec, num_envs=2, vectorization_mode="vector_entry_point")
            assert batched.unwrapped.rules == again.unwrapped.rules  # type: ignore[attr-defined]


def test_the_last_step_of_the_limit_tells_success_and_metrics():
    """A snake is a success when it lives at the end: the environment must know that it is the end."""
    env = gym.make("TextSnake-v0", max_steps=2)
    env.reset(seed=1)
    told = [env.step("up")[4] for _ in range(2)]
    assert [info["success"] for info in told] == [False, True]
    assert told[1]["legal_actions"] == ()
    metrics = gym.make("TextBandit-v0", max_steps=2)
    metrics.reset(seed=0)
    assert ["metrics" in metrics.step("?")[4] for _ in range(2)] == [False, True]


@pytest.mark.parametrize("env_id", SHIPPED)
def test_observations_can_know_the_time(env_id):
    env = gym.make(env_id, **others(env_id))
    apart: Any = TimeAwareObservation(env, flatten=False)
    apart.reset(seed=0)
    observation, *_ = apart.step("?")
    assert observation in apart.observation_space
    assert observation["time"] == [1]
    flat: Any = TimeAwareObservation(env)
    observation, _ = flat.reset(seed=0)
    assert observation in flat.observation_space


@pytest.mark.parametrize("text", ["", "a\nb", "é☃\U0001f40d 雪"])
def test_texts_of_any_script_can_be_flattened(text):
    space = ObservationText(max_length=50)
    flat = flatten(space, text)
    assert isinstance(flat, np.ndarray)
    assert flat in flatten_space(space)
    assert unflatten(space, flat) == text


# ---------------------------------------------------------------- limits that fit the board


def forms_of(env_id: str, **settings: Any) -> tuple[Any, ...]:
    """The environment of an id in each of its four forms."""
    batched = gym.make_vec(env_id, num_envs=2, vectorization_mode="vector_entry_point", **settings)
    everybody = textgames.parallel_env(env_id, **settings), textgames.aec_env(env_id, **settings)
    return (gym.make(env_id, **settings).unwrapped, batched, *everybody)


@pytest.mark.parametrize("size", [4, 6, 8, 12])
def test_optimal_play_wins_on_a_lake_of_any_size_within_the_limit_that_it_is_made_with(size):
    env: Any = gym.make("TextFrozenLake-v0", size=size).unwrapped
    solver = textgames.find_yardstick(env.game)
    assert solver is not None
    for seed in range(10):
        env.reset(seed=seed)
        assert solver.value(env.state, env.rules.max_steps, "player_0") == 1.0


def test_the_limit_of_a_lake_follows_its_size_or_its_map_in_every_form():
    winding = ["SFFFF", "HHHHF", "FFFFF", "FHHHH", "FFFFG"]
    for settings, limit in (
        ({}, 8),
        ({"size": 8}, 32),
        ({"desc": winding}, 21),
        ({"desc": ["S" + "F" * 20 + "G"]}, 28),
    ):
        assert [env.rules.max_steps for env in forms_of("TextFrozenLake-v0", **settings)] == [limit] * 4
    assert gym.make("TextFrozenLake-v0", size=8).spec.max_episode_steps == 32  # type: ignore[union-attr]
    assert gym.make("TextFrozenLake-v0", size=8, max_steps=11).unwrapped.rules.max_steps == 11  # type: ignore[attr-defined]
    assert gym.make("TextFrozenLake-v0", max_steps=None).unwrapped.rules.max_steps is None  # type: ignore[attr-defined]
    assert gym.make("TextFrozenLake-v0", size=8, twin=1).unwrapped.rules.max_steps == 32  # type: ignore[attr-defined]


def test_the_limit_of_a_snake_follows_its_board():
    for board, limit in (({}, 8), ({"width": 5, "height": 5}, 8), ({"width": 30, "height": 20}, 20)):
        assert gym.make("TextSnake-v0", **board).unwrapped.rules.max_steps == limit  # type: ignore[attr-defined]


def test_a_scenario_of_another_size_has_the_limit_of_that_size():
    lake = SCENARIOS["frozen-lake"]
    assert lake.make(size=8).unwrapped.rules.max_steps == 32
    assert lake.parallel_env(size=8).rules.max_steps == 32
    assert lake.make(size=8, max_steps=9).unwrapped.rules.max_steps == 9
    assert lake.make(grid=False).unwrapped.rules.max_steps == 8
    assert SCENARIOS["frozen-lake-big"].make(is_slippery=True).unwrapped.rules.max_steps == 20
    for settings, limit in (({"size": 8}, 32), ({"format_penalty": 1.0}, 8), ({"size": 8, "max_steps": 9}, 9)):
        task = EpisodeTask.of("frozen-lake", 0, **settings)
        assert textgames.parallel_env(task.env_id, **task.kwargs).rules.max_steps == limit


def test_a_map_that_takes_longer_than_the_limit_is_refused_with_both_numbers():
    told = r"max_steps=6 ends .* FrozenLake .* takes 7 rounds; accepted: at least 7"
    for make in (gym.make, textgames.parallel_env, textgames.aec_env):
        with pytest.raises(ValueError, match=told):
            make("TextFrozenLake-v0", desc=["SFFFFFFG"], max_steps=6)
    with pytest.raises(ValueError, match=told):
        gym.make_vec("TextFrozenLake-v0", 2, vectorization_mode="vector_entry_point", desc=["SFFFFFFG"], max_steps=6)
    with pytest.raises(ValueError, match=told):  # of two starts the farther one counts
        gym.make("TextFrozenLake-v0", desc=["SFFFFFFG", "FFFFFFFS"], max_steps=6)
    with pytest.raises(ValueError, match=told):
        SCENARIOS["frozen-lake"].make(desc=["SFFFFFFG"], max_steps=6)


@pytest.mark.parametrize("desc", [["SF", "FF"], ["SHG"], ["SFG", "HHH", "SFF"]])
def test_a_map_that_nobody_can_cross_is_refused_by_name(desc):
    with pytest.raises(ValueError, match=r"desc.* goal"):
        gym.make("TextFrozenLake-v0", desc=desc)


def test_auto_is_refused_in_a_game_without_a_limit_of_its_own():
    with pytest.raises(ValueError, match=r"max_steps must be a whole number .* got 'auto'"):
        gym.make("TextTaxi-v0", max_steps="auto")
