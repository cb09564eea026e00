"""``textgames.wrappers``: numbers for actions, boards as arrays, and the benchmark's own prompts."""

import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

import textgames
from agents import EpisodeSession, PromptMap
from textgames import SCENARIOS
from textgames.wrappers import BoardObservation, DiscreteActions, PromptObservation

LAKE = "TextFrozenLake-v0"


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
