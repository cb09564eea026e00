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
from textgames.environments.spaces import ObservationText
from textgames.environments.vector import TextVectorEnv

SHIPPED = [env_id for env_id in textgames.registered_ids() if not env_id.startswith(("Test", "OpenSpiel"))]
LAKE = "TextFrozenLake-v0"


def make_vec(env_id: str, num_envs: int = 1, **settings: Any) -> Any:
    return gym.make_vec(env_id, num_envs=num_envs, vectorization_mode="vector_entry_point", **settings)


def others(env_id: str) -> dict[str, Any]:
    return {"opponents": "random"} if len(textgames.game_of(env_id).players) > 1 else {}


def played(env: Any, response: Any = "?") -> tuple[int, bool, bool]:
    """The steps of an episode of unreadable responses, and whether it ended by the rules, or by the limit alone."""
    env.reset(seed=0)
    for steps in range(1, 1000):
        _, _, terminated, truncated, _ = env.step(response)
        if np.all(terminated) or np.all(truncated):
            return steps, bool(np.all(terminated)), bool(np.all(truncated) and not np.all(terminated))
    return 1000, False, False


@pytest.mark.parametrize("env_id", SHIPPED)
def test_gymnasiums_limit_cuts_episodes_shorter_in_a_single_environment_and_in_a_batch(env_id):
    settings = others(env_id)
    registered = gym.make(env_id, **settings)
    own = registered.spec.max_episode_steps  # type: ignore[union-attr]
    assert own is not None
    assert played(registered)[0] <= own
    for limit in (1, 3, own + 70):
        one = gym.make(env_id, max_episode_steps=limit, **settings)
        many = make_vec(env_id, max_episode_steps=limit, **settings)
        assert one.spec.max_episode_steps == many.spec.max_episode_steps == limit  # type: ignore[union-attr]
        steps, by_rules, by_limit = played(one)
        assert (steps, by_rules, by_limit) == played(many, ["?"]) == played(many, ["?"])  # the second episode, too
        assert steps <= min(limit, own)
        assert by_rules or own < limit or steps == limit


@pytest.mark.parametrize("env_id", [LAKE, "TextGathering-v0"])
@pytest.mark.parametrize("limit", [3, 60])
def test_max_steps_makes_episodes_shorter_and_longer_and_is_told(env_id, limit):
    env = gym.make(env_id, max_steps=limit, invalid_action="default", **others(env_id))
    assert env.spec is not None
    assert env.spec.max_episode_steps == limit
    assert played(env) == played(env.spec.make()) == (limit, False, True)
    endless: Any = gym.make(LAKE, max_steps=None, invalid_action="default")
    assert endless.spec.max_episode_steps is None
    assert played(endless)[0] == 1000


def test_other_limits_are_refused():
    for limit, message in ((0, ".* got 0"), ("8", ".* got '8'"), ("auto", ".* got 'auto'")):
        with pytest.raises(ValueError, match=f"max_steps must be a whole number {message}"):
            gym.make("TextTaxi-v0", max_steps=limit)  # which has no limit of its own
        with pytest.raises(ValueError, match=f"max_episode_steps must be a whole number {message}"):
            TextVectorEnv("textgames.frozen_lake:FrozenLake", max_episode_steps=limit)


@pytest.mark.parametrize("asked", [{}, {"max_episode_steps": 77}, {"max_steps": 5, "size": 5}])
def test_a_spec_is_plain_data_and_makes_its_environment_again(asked):
    env: Any = gym.make(LAKE, **asked)
    again: Any = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert again.spec.max_episode_steps == env.spec.max_episode_steps
    assert again.reset(seed=1) == env.reset(seed=1)
    batched: Any = gym.make_vec(env.spec, num_envs=2, vectorization_mode="vector_entry_point")
    assert batched.unwrapped.rules == again.unwrapped.rules == env.spec.make().unwrapped.rules


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


def test_observations_can_know_the_time_and_be_flattened():
    env: Any = TimeAwareObservation(gym.make(LAKE), flatten=False)
    env.reset(seed=0)
    observation, *_ = env.step("?")
    assert observation in env.observation_space
    assert observation["time"] == [1]
    space, text = ObservationText(max_length=50), "a\né☃\U0001f40d 雪"
    assert flatten(space, text) in flatten_space(space)
    assert unflatten(space, flatten(space, text)) == text


@pytest.mark.parametrize(
    ("env_id", "settings", "limit"),
    [
        (LAKE, {}, 8),
        (LAKE, {"size": 8, "twin": 1}, 32),
        (LAKE, {"size": 8, "max_steps": 11}, 11),
        (LAKE, {"desc": ["SFFFF", "HHHHF", "FFFFF", "FHHHH", "FFFFG"]}, 21),
        (LAKE, {"desc": ["S" + "F" * 20 + "G"]}, 28),
        ("TextSnake-v0", {"width": 5, "height": 5}, 8),
        ("TextSnake-v0", {"width": 30, "height": 20}, 20),
    ],
)
def test_the_limit_follows_the_board_in_every_form(env_id, settings, limit):
    single: Any = gym.make(env_id, **settings)
    assert single.spec.max_episode_steps == limit
    everybody = textgames.parallel_env(env_id, **settings), textgames.aec_env(env_id, **settings)
    assert {env.rules.max_steps for env in (single.unwrapped, make_vec(env_id, **settings), *everybody)} == {limit}


def test_a_scenario_of_another_size_has_the_limit_of_that_size():
    lake = SCENARIOS["frozen-lake"]
    assert SCENARIOS["frozen-lake-big"].make(is_slippery=True).unwrapped.rules.max_steps == 20
    for settings, limit in (({"size": 8}, 32), ({"format_penalty": 1.0}, 8), ({"size": 8, "max_steps": 9}, 9)):
        task = EpisodeTask.of("frozen-lake", 0, **settings)
        assert textgames.parallel_env(task.env_id, **task.kwargs).rules.max_steps == limit
        assert lake.make(**settings).unwrapped.rules.max_steps == limit
        assert lake.parallel_env(**settings).rules.max_steps == limit


def test_a_map_that_takes_longer_than_the_limit_is_refused_with_both_numbers():
    told = r"max_steps=6 ends .* FrozenLake .* takes 7 rounds; accepted: at least 7"
    for make in (gym.make, textgames.parallel_env, textgames.aec_env, make_vec):
        with pytest.raises(ValueError, match=told):
            make(LAKE, desc=["SFFFFFFG"], max_steps=6)
    with pytest.raises(ValueError, match=told):  # of two starts the farther one counts
        gym.make(LAKE, desc=["SFFFFFFG", "FFFFFFFS"], max_steps=6)
    with pytest.raises(ValueError, match=told):
        SCENARIOS["frozen-lake"].make(desc=["SFFFFFFG"], max_steps=6)
    for desc in (["SF", "FF"], ["SHG"], ["SFG", "HHH", "SFF"]):
        with pytest.raises(ValueError, match=r"desc.* goal"):
            gym.make(LAKE, desc=desc)
