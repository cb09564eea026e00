"""``max_episode_steps`` means what it means in Gymnasium, alone and in batches; specs tell the limit."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import flatten, flatten_space, unflatten
from gymnasium.wrappers import TimeAwareObservation

import textgames
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
def test_one_meaning_in_a_single_environment_and_in_a_batch(env_id: str) -> None:
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
        assert played == batch(many)
        assert played[0] <= limit
        assert played[1] or played[0] == limit


@pytest.mark.parametrize("env_id", ["TextFrozenLake-v0", "TextGathering-v0"])
@pytest.mark.parametrize("limit", [2, 60])
def test_more_and_fewer_steps_than_registered(env_id: str, limit: int) -> None:
    assert single(gym.make(env_id, max_episode_steps=limit, **others(env_id))) == (limit, False, True)
    sync: Any = gym.make_vec(env_id, num_envs=1, max_episode_steps=limit, vectorization_mode="sync", **others(env_id))
    assert batch(sync) == (limit, False, True)


def test_max_steps_is_accepted_and_told() -> None:
    for limit in (3, 50):
        env = gym.make("TextFrozenLake-v0", max_steps=limit)
        assert env.spec is not None
        assert env.spec.max_episode_steps == limit
        assert single(env) == (limit, False, True)
        assert single(env.spec.make()) == (limit, False, True)
    both = gym.make("TextFrozenLake-v0", max_steps=3, max_episode_steps=5)
    assert single(both) == batch(TextVectorEnv("textgames.frozen_lake:FrozenLake", max_steps=3, max_episode_steps=5))
    assert SCENARIOS["frozen-lake"].make().spec.max_episode_steps == SCENARIOS["frozen-lake"].horizon


def test_no_limit_is_minus_one_as_in_gymnasium() -> None:
    env = gym.make("TextFrozenLake-v0", max_episode_steps=-1)
    assert isinstance(env, TextGameEnv)
    assert env.spec is not None
    assert env.spec.max_episode_steps is None
    assert single(env)[0] == 1000


@pytest.mark.parametrize("limit", [0, -2, 2.5, "8"])
def test_other_limits_are_refused(limit: Any) -> None:
    with pytest.raises(ValueError, match=r"max_episode_steps must be a whole number .*, got"):
        gym.make("TextFrozenLake-v0", max_episode_steps=limit)


def test_a_spec_makes_its_environment_again() -> None:
    for env_id in ("TextFrozenLake-v0", "TextTicTacToe-v0"):
        cases: tuple[dict[str, Any], ...] = ({}, {"max_episode_steps": 77}, {"max_steps": 5})
        for asked in cases:
            spec = gym.make(env_id, **asked, **others(env_id)).spec
            assert spec is not None
            again = spec.make()
            assert again.spec is not None
            assert again.spec.max_episode_steps == spec.max_episode_steps
            assert again.unwrapped.limits == gym.make(spec).unwrapped.limits  # type: ignore[attr-defined]
            assert again.unwrapped.limits.steps == asked.get("max_episode_steps", float("inf"))  # type: ignore[attr-defined]


def test_the_last_step_of_the_asked_limit_tells_success_and_metrics() -> None:
    """A snake is a success when it lives at the end: the environment must know that it is the end."""
    env = gym.make("TextSnake-v0", max_episode_steps=2)
    env.reset(seed=1)
    assert [env.step("up")[4]["success"] for _ in range(2)] == [False, True]
    metrics = gym.make("TextBandit-v0", max_episode_steps=2)
    metrics.reset(seed=0)
    assert ["metrics" in metrics.step("?")[4] for _ in range(2)] == [False, True]
    fresh = gym.make("TextSnake-v0", max_episode_steps=2)
    fresh.reset(seed=1)
    fresh.step("up")
    assert fresh.step("up")[4]["legal_actions"] == ()


def test_steps_are_counted_on_from_a_snapshot() -> None:
    env: Any = gym.make("TextTicTacToe-v0", max_episode_steps=3, opponents="random").unwrapped
    env.reset(seed=0)
    env.step("?")
    snapshot = env.save_state()
    other: Any = gym.make("TextTicTacToe-v0", max_episode_steps=3, opponents="random").unwrapped
    other.reset(seed=5)
    other.restore_state(snapshot)
    assert env.step("?") == other.step("?")
    assert env.step("?") == other.step("?")


def test_rewards_don_t_depend_on_how_the_limit_is_given() -> None:
    told = []
    cases: tuple[dict[str, Any], ...] = ({"max_steps": 6}, {"max_episode_steps": 6})
    for limit in cases:
        env = gym.make("TextCliffWalking-v0", format_penalty=0.5, **limit)
        env.reset(seed=4)
        told.append([env.step(action) for action in ("up", "right", "?", "right", "fly", "left")])
    assert told[0] == told[1]
    assert told[0][-1][3] is True


@pytest.mark.parametrize("env_id", SHIPPED)
def test_observations_can_know_the_time(env_id: str) -> None:
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
def test_texts_of_any_script_can_be_flattened(text: str) -> None:
    space = ObservationText(max_length=50)
    flat = flatten(space, text)
    assert isinstance(flat, np.ndarray)
    assert flat in flatten_space(space)
    assert unflatten(space, flat) == text


def test_as_many_steps_can_be_asked_for_as_rounds() -> None:
    env = gym.make("TextFrozenLake-v0", max_episode_steps=1_000_000)
    assert env.spec is not None
    assert env.spec.max_episode_steps == 1_000_000
