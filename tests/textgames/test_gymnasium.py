"""Limits of steps, in specs too and by Gymnasium's max_episode_steps, and our wrappers: numbers, boards and prompts."""

import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.spaces import flatten, flatten_space, unflatten
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import TimeAwareObservation

import textgames
from agents import EpisodeSession, EpisodeTask, PromptMap
from textgames import SCENARIOS
from textgames.environments.spaces import ObservationText
from textgames.environments.vector import TextVectorEnv
from textgames.wrappers import BoardObservation, DiscreteActions, PromptObservation

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


def env_of(scenario: str) -> Any:
    one = SCENARIOS[scenario]
    inside = {"opponents": "random"} if len(one.game().players) > 1 else {}
    return gym.make(one.env_id, **one.settings(**inside))


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_game_is_played_by_numbers_or_says_why_not(name):
    """A random choice among the masked actions is always valid, and every valid action has its number."""
    env, game = env_of(name), SCENARIOS[name].game()
    if not game.actions:
        with pytest.raises(ValueError, match=rf"whose actions are all listed, in game.actions; {type(game).__name__}"):
            DiscreteActions(env)
        return
    env, over, rng = DiscreteActions(env), False, np.random.default_rng(0)
    assert env.action_space == spaces.Discrete(len(game.actions))
    _, info = env.reset(seed=3)
    while not over:
        if not info["legal_actions"]:  # by day everyone speaks
            assert name.startswith("werewolf")
            for asked in (env.action_masks, lambda: env.step(0)):
                with pytest.raises(ValueError, match="a free text is asked for now"):
                    asked()
            return
        mask = env.action_masks()
        assert {env.names[k] for k in np.flatnonzero(mask)} == set(info["legal_actions"])
        choice = rng.choice(np.flatnonzero(mask))
        _, _, terminated, truncated, info = env.step(choice)
        assert (info["valid"], info["action"]) == (True, env.names[choice])
        over = terminated or truncated
    assert env.action_masks().all()


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_board_is_one_hot_or_says_why_not(name):
    game = SCENARIOS[name].game()
    if game.seen_by(game.initial_state(np.random.default_rng(0)), "player_0") is None:
        with pytest.raises(ValueError, match=rf"{type(game).__name__} has no board that shows its player what the"):
            BoardObservation(env_of(name))
        return
    env = BoardObservation(env_of(name), dtype=np.uint8)
    env.action_space.seed(0)
    planes, _ = env.reset(seed=3)
    for _ in range(5):
        assert env.observation_space.contains(planes)
        assert env.observation_space.shape[0] == len(game.palette)
        rows = ["".join(env.marks[k] for k in row) for row in planes.argmax(axis=0)]
        assert tuple(rows) == env.unwrapped.game.seen_by(env.unwrapped.state, "player_0")[0]
        assert (planes.sum(axis=0) == 1).all()
        planes, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            break


@pytest.mark.parametrize(("history", "moves"), [(0, "listed"), (2, "unlisted")])
def test_a_prompt_is_what_the_benchmark_sends(history, moves):
    prompts = PromptMap("direct", history)
    for name, scenario in SCENARIOS.items():
        if len(scenario.game().players) > 1:
            continue
        env = PromptObservation(env_of(name), prompts, messages=True, moves_listed=moves == "listed")
        session = EpisodeSession(name, scenario.seed(1), prompt_map=prompts, moves=moves)
        observation, _ = env.reset(seed=scenario.seed(1))
        rng, inner, over = np.random.default_rng(0), env.unwrapped, False
        while not session.over:
            assert list(observation) == session.messages, name
            assert env.observation_space.contains(observation)
            response = f"<action>{inner.game.sample_action(inner.state, inner.player, rng)}</action>"
            session.respond(response)
            observation, _, terminated, truncated, _ = env.step(response)
            over = terminated or truncated
        assert over
    env = PromptObservation(env_of("tic-tac-toe"), messages=False)  # one seat of two
    assert "You play X" in env.reset(seed=0)[0]
    assert isinstance(env.observation_space, spaces.Text)


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
def test_wrappers_keep_to_gymnasium():
    both = textgames.wrappers.DiscreteActions(BoardObservation(gym.make(LAKE)))
    for env in (both, PromptObservation(gym.make(LAKE)), PromptObservation(gym.make(LAKE), messages=True)):
        check_env(env, skip_render_check=True)
    again = gym.make(both.spec)
    assert (again.reset(seed=1)[0] == both.reset(seed=1)[0]).all()
    batch: Any = gym.make_vec(LAKE, 3, vectorization_mode="sync", wrappers=[BoardObservation, DiscreteActions])
    planes, _ = batch.reset(seed=0)
    assert (planes.shape, planes.dtype) == ((3, 4, 4, 4), np.float32)
    assert np.array(batch.call("action_masks")).shape == (3, 4)
    assert batch.step(np.array([0, 1, 2]))[4]["valid"].all()


def test_wrong_environments_and_orders():
    with pytest.raises(TypeError, match="takes a Gymnasium environment of textgames"):
        DiscreteActions(gym.make("CartPole-v1"))
    with pytest.raises(ValueError, match="Twin has no board"):  # it would be the original's
        BoardObservation(gym.make(LAKE, twin=1))
    lake: Any = DiscreteActions(gym.make(LAKE))
    lake.reset(seed=0)
    for action in (-1, 4, 1.5, "left"):
        with pytest.raises(ValueError, match=f"a whole number from 0 to 3, got {action!r}"):
            lake.step(action)
    with pytest.raises(ValueError, match="wrap it in DiscreteActions"):
        PromptObservation(DiscreteActions(gym.make(LAKE)))
    env: Any = BoardObservation(gym.make(LAKE))
    env.reset(seed=0)
    env.unwrapped.game.board = lambda state: ("P?", "_G")
    with pytest.raises(ValueError, match="has to keep its size and the characters of the palette, 'POG_'; it is"):
        env.step("left")


def test_instructions_are_an_attribute_everywhere():
    """One text if one player acts, else a text for each player."""
    one: Any = gym.make(LAKE)
    batch: Any = gym.make_vec(LAKE, 2)
    assert one.unwrapped.instructions == batch.unwrapped.instructions == one.unwrapped.game.instructions("player_0")
    for several in (textgames.parallel_env("TextTicTacToe-v0"), textgames.aec_env("TextTicTacToe-v0")):
        game = several.game
        assert several.instructions == {player: game.instructions(player) for player in several.possible_agents}


def test_the_games_alone_say_that_prompts_come_with_textbench(monkeypatch):
    monkeypatch.delitem(sys.modules, "textbench.agents", raising=False)
    monkeypatch.setitem(sys.modules, "textbench", None)
    told = r"games alone .*: pip uninstall textbench-games, then install textbe"
    with pytest.raises(ModuleNotFoundError, match=told):
        PromptObservation(env_of("frozen-lake"))
