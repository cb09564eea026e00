"""The Gymnasium environment, batches and the PettingZoo environment: what is theirs and not the games'."""

import contextlib
import copy
import io
import json
import pickle
import re
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pettingzoo
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import FrameStackObservation, RecordVideo
from pettingzoo.utils.conversions import aec_to_parallel

import textgames
from agents import EpisodeTask
from textgames.environments.render import render_state
from textgames.environments.solo import TextGameEnv
from textgames.environments.spaces import ObservationText, ResponseText
from textgames.frozen_lake import FrozenLake

IDS = ["TextFrozenLake-v0", "TextSnake-v0"]
SAFE_LAKE = ("SFFFFFFG",)


def make(**settings: Any) -> Any:
    return gym.make("TextFrozenLake-v0", desc=SAFE_LAKE, **settings)


# ---------------------------------------------------------------- one player


def test_the_module_prefix_registers():
    assert isinstance(gym.make("textgames:TextFrozenLake-v0").unwrapped, TextGameEnv)


def test_a_step_tells_everything():
    env = make(max_steps=7)
    observation, info = env.reset(seed=0)
    assert observation.startswith("Board: 8 wide, 1 high.")
    assert info == {"success": False, "legal_actions": ("left", "down", "right", "up")}
    _, reward, terminated, truncated, info = env.step("<think>east</think><action>Right</action>")
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert info == {
        "valid": True,
        "action": "right",
        "unreadable": None,
        "success": False,
        "legal_actions": ("left", "down", "right", "up"),
    }


def test_truncation_and_termination_are_never_mixed():
    env = make(max_steps=7)
    env.reset(seed=0)
    for _ in range(6):
        assert env.step("right")[2:4] == (False, False)
    assert env.step("right")[1:4] == (1.0, True, False)  # reaches the goal on the last step
    env = make(max_steps=7)
    env.reset(seed=0)
    steps = [env.step(move) for move in ("left", *["right"] * 6)]
    assert steps[-1][2:4] == (False, True)
    assert steps[-1][4]["success"] is False


@pytest.mark.parametrize("mode", ["default", "random", "terminate"])
def test_unreadable_responses(mode):
    env = make(invalid_action=mode, format_penalty=0.5)
    env.reset(seed=3)
    _, reward, terminated, truncated, info = env.step("no idea")
    assert (info["valid"], info["unreadable"], reward, truncated) == (False, "no_tag", -0.5, False)
    assert terminated == (mode == "terminate")
    assert info["action"] == {"default": "left", "terminate": ""}.get(mode, info["action"])
    if mode == "random":
        actions = set()
        for seed in range(40):
            env.reset(seed=seed)
            actions.add(env.step("no idea")[4]["action"])
        assert actions == {"left", "down", "right", "up"}


def test_a_response_that_ends_the_episode_is_no_success():
    env = gym.make("TextSnake-v0", invalid_action="terminate")  # the snake is alive when it is stopped
    env.reset(seed=0)
    assert env.step("?")[4]["success"] is False


def test_the_penalty_is_for_invalid_responses_only():
    env = make(format_penalty=1.0)
    env.reset(seed=0)
    assert [env.step(text)[1] for text in ("right", "rihgt", "right")] == [0.0, -1.0, 0.0]


@pytest.mark.parametrize("response", ["", "\n", "é☃\U0001f40d", "x" * 10_000, "<action>up</action>" * 3, "\x00\ud800"])
def test_any_response_is_accepted_and_in_the_space(response):
    for env_id in IDS:
        env = gym.make(env_id)
        observation, _ = env.reset(seed=0)
        assert response in env.action_space
        assert env.step(response)[0] in env.observation_space
        assert observation in env.observation_space


def test_what_is_not_text_is_refused():
    env = make()
    env.reset(seed=0)
    assert 2 not in env.action_space
    with pytest.raises(TypeError, match="a response is a string, as a model writes it, got int: 2"):
        env.step(2)


def test_samples_are_commands():
    for env_id in IDS:
        env: Any = gym.make(env_id)
        env.action_space.seed(0)
        assert {env.action_space.sample() for _ in range(60)} == set(env.unwrapped.game.actions)
        with pytest.raises(ValueError, match="no mask"):
            env.action_space.sample(mask=(1, None))


def test_steps_out_of_order_are_refused():
    env = gym.make("TextFrozenLake-v0", max_steps=1)
    with pytest.raises(ResetNeeded, match=r"before reset\(\)"):
        env.step("left")
    with pytest.raises(ResetNeeded, match="render"):
        env.render()
    env.reset(seed=0)
    env.step("left")
    with pytest.raises(ResetNeeded, match="the episode ended after 1 steps"):
        env.step("left")
    env.reset()
    env.step("left")


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"max_step": 3}, TypeError, "did you mean 'max_steps'"),
        ({"slippery": True}, TypeError, "did you mean 'is_slippery'"),
        ({"max_steps": 0}, ValueError, "max_steps must be a whole number of at least 1, or None for no limit, got 0"),
        ({"max_steps": 2.5}, ValueError, "got 2.5"),
        ({"format_penalty": -1}, ValueError, "format_penalty must be a finite number of at least 0, got -1"),
        ({"format_penalty": float("nan")}, ValueError, "got nan"),
        ({"format_penalty": "1"}, ValueError, "format_penalty must be a finite number of at least 0, got '1'"),
        ({"format_penalty": None}, ValueError, "format_penalty must be a finite number of at least 0, got None"),
        ({"frozen_probability": None}, ValueError, "frozen_probability must be a number from 0 to 1, got None"),
        ({"frozen_probability": 0}, ValueError, "frozen_probability must be above 0, got 0"),
        ({"success_rate": "abc"}, ValueError, "success_rate must be a number from 0 to 1, got 'abc'"),
        ({"desc": 3}, ValueError, "desc must be a sequence of rows such as .*, got 3"),
        ({"invalid_action": "defualt"}, ValueError, "did you mean 'default'"),
        ({"invalid_action": "noop"}, ValueError, "needs a game with an action that does nothing"),
    ],
)
def test_bad_settings_are_named(settings, error, message):
    with pytest.raises(error, match=message):
        gym.make("TextFrozenLake-v0", **settings)
    with pytest.raises(error, match=message):
        textgames.parallel_env("TextFrozenLake-v0", **settings)
    with pytest.raises(error, match=message):
        gym.make_vec("TextFrozenLake-v0", num_envs=2, vectorization_mode="vector_entry_point", **settings)


@pytest.mark.parametrize("form", [textgames.parallel_env, textgames.aec_env])
@pytest.mark.parametrize("settings", [{"opponents": "random"}, {"seat": "player_1", "level": 0, "twin": 1}])
def test_where_everybody_plays_outside_no_setting_of_one_seat_is_offered(form, settings):
    with pytest.raises(TypeError, match=r"KuhnPoker has no setting '(opponents|seat)'; it has level") as refused:
        form("TextKuhnPoker-v0", **settings)
    offered = str(refused.value).partition(";")[2]
    assert "max_cycles" in offered
    assert not {"seat", "opponents", "max_episode_steps"} & set(re.findall(r"\w+", offered))


def test_arguments_of_another_type_are_named():
    for env in every_form():
        with pytest.raises(
            ValueError, match=r"the options of reset\(\) must be a dictionary with .*layout_seed.*, got 5"
        ):
            env.reset(options=5)
    games = batch(num_envs=2)
    for given in (1.5, "12"):
        with pytest.raises((ValueError, gym.error.Error), match=r"(?i)seed must be"):
            games.reset(seed=given)
    games.reset(seed=1)
    with pytest.raises(TypeError, match="expected 2 responses, one a game, got None"):
        games.step(None)
    every = textgames.parallel_env("TextFrozenLake-v0")
    every.reset(seed=1)
    with pytest.raises(TypeError, match=r"step\(\) takes \{agent: response\} of every agent in .*, got None"):
        every.step(None)  # type: ignore[arg-type]


def test_bad_render_modes_are_named():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gymnasium's own word about it comes first
        with pytest.raises(ValueError, match="did you mean 'human'"):
            gym.make("TextSnake-v0", render_mode="humman")


@pytest.mark.parametrize("seed", [-1, 1.5, "3", True])
def test_bad_layout_seeds_are_refused(seed):
    with pytest.raises(ValueError, match="layout_seed"):
        make().reset(seed=0, options={"layout_seed": seed})


def every_form(env_id: str = "TextFrozenLake-v0") -> list[Any]:
    return [gym.make(env_id), batch(env_id, num_envs=2), textgames.parallel_env(env_id), pettingzoo.make("aec", env_id)]


@pytest.mark.parametrize("form", range(4), ids=["solo", "vector", "parallel", "aec"])
def test_misspelt_reset_options_are_refused(form):
    env = every_form()[form]
    with pytest.raises(
        ValueError, match=r"no option 'layoutseed' \(did you mean 'layout_seed'\?\); accepted: layout_s"
    ):
        env.reset(seed=0, options={"layoutseed": 3})
    env.reset(seed=0, options={"layout_seed": 3})
    env.reset(seed=0, options={})


def test_two_players_are_sent_to_pettingzoo():
    with pytest.raises(ValueError, match="parallel_env"):
        gym.make("TextSnake-v0", num_players=2, opponents=None)
    gym.make("TextSnake-v0", num_players=2).reset(seed=0)  # as registered, the others play at random


@pytest.mark.parametrize("env_id", IDS)
def test_copies_and_pickles_in_mid_episode(env_id):
    env: Any = gym.make(env_id, max_steps=20)
    env.reset(seed=11)
    env.step("up")
    twins = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    moves = ["right", "up", "left", "down", "up", "up"]

    def play(env: Any) -> list[Any]:
        told: list[Any] = []
        while not (told and (told[-1][2] or told[-1][3])):
            told.append(env.step(moves[len(told) % len(moves)]))
        return told

    snapshot, text = env.unwrapped.save_state(), env.unwrapped.game.observe(env.unwrapped.state, "player_0")
    first = play(env)
    assert [play(twin) for twin in twins] == [first, first]
    assert env.unwrapped.restore_state(snapshot) == text
    assert play(env) == first


def test_there_is_nothing_to_read_before_the_first_reset():
    with pytest.raises(ResetNeeded, match=r"action_help was called before reset\(\)"):
        _ = make().unwrapped.action_help
    for form in (textgames.parallel_env, textgames.aec_env):
        with pytest.raises(ResetNeeded, match=r"observe\(\) was called before reset\(\)"):
            form("TextKuhnPoker-v0").observe("player_0")


def test_there_is_nothing_to_save_before_the_first_reset():
    for env in (make().unwrapped, textgames.parallel_env("TextSnake-v0")):
        with pytest.raises(ResetNeeded, match=r"save_state\(\) was called before reset\(\)"):
            env.save_state()


def test_what_is_no_snapshot_changes_nothing():
    lake, snake = make(), gym.make("TextSnake-v0")
    lake.reset(seed=1)
    snake.reset(seed=1)
    foreign, before = lake.unwrapped.save_state(), snake.unwrapped.save_state()
    for given in ("x", None, (1, 2)):
        with pytest.raises(TypeError, match=r"a snapshot is what save_state\(\) returned, got"):
            snake.unwrapped.restore_state(given)
        with pytest.raises(TypeError, match=r"a snapshot is what save_state\(\) returned, got"):
            textgames.parallel_env("TextSnake-v0").restore_state(given)  # type: ignore[arg-type]
    with pytest.raises(TypeError):  # of another game
        snake.unwrapped.restore_state(foreign)
    assert snake.unwrapped.save_state() == before


def test_short_numbers_of_numpy_are_numbers():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gym.make("TextFrozenLake-v0", format_penalty=np.float32(1), frozen_probability=np.float16(0.75))


def test_the_spec_is_plain_data():
    env = gym.make("TextFrozenLake-v0", size=5)
    assert env.spec is not None
    again = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert again.reset(seed=1) == env.reset(seed=1)
    assert json.loads(env.spec.to_json())["kwargs"]["size"] == 5


# ---------------------------------------------------------------- wrappers and rendering


def test_frames_can_be_stacked():
    env: Any = FrameStackObservation(gym.make("TextSnake-v0"), 3)
    first, _ = env.reset(seed=0)
    second = env.step("up")[0]
    assert len(first) == len(second) == 3
    assert second[2] != first[2] == second[1]
    assert second in env.observation_space


@pytest.mark.slow
def test_videos_can_be_recorded(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # moviepy's
        env = RecordVideo(gym.make("TextSnake-v0", render_mode="rgb_array"), str(tmp_path), disable_logger=True)
        env.reset(seed=0)
        for _ in range(8):
            _, _, terminated, truncated, _ = env.step("up")
            if terminated or truncated:
                break
        env.close()
    (video,) = tmp_path.glob("*.mp4")
    assert video.stat().st_size > 500


def test_pictures():
    env: Any = gym.make("TextSnake-v0", width=7, height=3, render_mode="rgb_array")
    env.reset(seed=0)
    frame = env.render()
    assert (frame.shape, frame.dtype) == (((3 + 14) * 32, 7 * 32, 3), np.uint8)
    for y, row in enumerate(env.unwrapped.game.board(env.unwrapped.state)):
        for x, mark in enumerate(row):
            assert tuple(frame[y * 32 + 5, x * 32 + 5]) == env.unwrapped.game.palette[mark]


def test_text_pictures():
    env = gym.make("TextFrozenLake-v0", desc=("SH", "FG"), render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == "P O\n_ G"


def test_the_live_board_is_drawn_over_itself_on_a_terminal_only():
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    game = textgames.game_of("TextFrozenLake-v0", desc=("SH", "FG"))
    state = game.initial_state(np.random.default_rng(0))
    plain, live = io.StringIO(), Terminal()
    for terminal in (plain, live):
        with contextlib.redirect_stdout(terminal):
            render_state(game, state, "human", "step 0", None, "player_0")
    assert plain.getvalue() == "step 0\nP O\n_ G\n\n"
    assert live.getvalue().startswith("\x1b[H\x1b[2J")
    assert "48;2;213;94;0" in live.getvalue()


def test_the_human_mode_draws_at_every_step(capsys):
    env = make(render_mode="human")
    env.reset(seed=0)
    env.step("right")
    assert capsys.readouterr().out == "step 0\nP _ _ _ _ _ _ G\n\nstep 1\n_ P _ _ _ _ _ G\n\n"


# ---------------------------------------------------------------- batches


def batch(env_id: str = "TextFrozenLake-v0", num_envs: int = 5, **settings: Any) -> Any:
    return gym.make_vec(env_id, num_envs=num_envs, vectorization_mode="vector_entry_point", **settings)


def info_of(infos: dict[str, Any], i: int) -> dict[str, Any]:
    return {
        key: info_of(value, i) if isinstance(value, dict) else value[i]
        for key, value in infos.items()
        if not key.startswith("_") and np.any(infos[f"_{key}"][i])
    }


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_a_batch_is_gymnasiums_own_vector_environment_only_faster(env_id, mode):
    """Observations, rewards, ends and infos (final ones too) equal those of SyncVectorEnv, step by step."""
    settings: dict[str, Any] = {"format_penalty": 0.5, "max_steps": 5, "invalid_action": "random"}
    ours = batch(env_id, autoreset_mode=mode, **settings)
    theirs = gym.make_vec(
        env_id, num_envs=5, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}, **settings
    )
    rng = np.random.default_rng(0)
    told = [ours.reset(seed=3), theirs.reset(seed=3)]
    assert told[0][0] == tuple(told[1][0])
    for _ in range(60):
        responses = [
            ("left", "down", "right", "up", "nowhere", "<action>up</action>")[k] for k in rng.integers(6, size=5)
        ]
        mine, other = ours.step(responses), theirs.step(responses)
        assert mine[0] == tuple(other[0])
        for a, b in zip(mine[1:4], other[1:4], strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype
        for i in range(5):
            assert info_of(mine[4], i) == info_of(other[4], i)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_a_step_in_which_all_games_are_reset_has_the_names_of_every_step(mode):
    env = batch(num_envs=2, max_steps=1, autoreset_mode=mode)
    env.reset(seed=0)
    for _ in range(2):
        infos = env.step(["left", "left"])[4]
        assert {"valid", "action", "unreadable", "success", "legal_actions"} <= set(infos)
    assert infos["_valid"].tolist() == [False, False]


def test_autoreset_disabled_leaves_the_reset_to_the_caller():
    env = batch(num_envs=3, desc=("SFG",), max_steps=2, autoreset_mode="Disabled")
    first, _ = env.reset(seed=0)
    env.step(["right", "left", "right"])
    observations, _, _, truncations, _ = env.step(["left", "right", "left"])
    assert truncations.tolist() == [True] * 3
    with pytest.raises(ResetNeeded, match=r"game 0 ended after 2 steps and autoreset is disabled.*reset_mask"):
        env.step(["left"] * 3)
    mask = np.array([True, False, False])
    after, infos = env.reset(options={"reset_mask": mask})
    assert after == (first[0], *observations[1:])
    assert infos["_legal_actions"].tolist() == infos["_success"].tolist() == mask.tolist()
    with pytest.raises(ResetNeeded, match="game 1"):
        env.step(["left"] * 3)


@pytest.mark.parametrize("mask", [[True, False], np.array([1, 0]), np.array([True]), np.array([False, False])])
def test_bad_reset_masks_are_refused(mask):
    env = batch(num_envs=2)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="reset_mask"):
        env.reset(options={"reset_mask": mask})


def test_batches_take_one_seed_each():
    env = batch(num_envs=3)
    assert env.reset(seed=[7, 8, 9])[0] == env.reset(seed=7)[0]
    layouts = env.reset(seed=[1, 2, 3], options={"layout_seed": 4})[0]
    assert len(set(layouts)) == 1
    assert env.reset(seed=0, options={"layout_seed": [7, 8, 9]})[0] == env.reset(seed=7)[0]
    with pytest.raises(ValueError, match="3 of them, got 2"):
        env.reset(seed=[1, 2])
    assert env.reset(seed=np.arange(7, 10))[0] == env.reset(seed=np.int64(7))[0] == env.reset(seed=7)[0]


def test_batches_refuse_wrong_calls():
    env = batch(num_envs=2)
    with pytest.raises(ResetNeeded, match=r"before reset\(\)"):
        env.step(["left", "left"])
    env.reset(seed=0)
    with pytest.raises(ValueError, match="expected 2 responses, one a game, got 1"):
        env.step(["left"])
    # the word has as many letters as there are games
    with pytest.raises(TypeError, match=r"got one string: 'up'; to give it to every game, write step\(\['up'\] \* 2\)"):
        env.step("up")
    before = env.states
    with pytest.raises(TypeError, match="game 1: a response is a string, as a model writes it, got NoneType: None"):
        env.step(["right", None])
    assert env.states == before, "no game has moved before all responses were looked at"
    with pytest.raises(ValueError, match="seed must be one whole number or 2 of them, got 'x'"):
        env.reset(seed="x")
    for unordered in ({"left": 1, "up": 2}, {"left", "up"}, iter(["left", "up"])):
        with pytest.raises(TypeError, match="expected 2 responses, one a game, got"):
            env.step(unordered)
    with pytest.raises(ValueError, match="num_envs"):
        batch(num_envs=0)
    with pytest.raises(ValueError, match="did you mean 'NextStep'"):
        batch(autoreset_mode="NextSteps")


def test_a_batchs_spaces_hold_what_it_gives():
    env = batch("TextSnake-v0", num_envs=4)
    observations, _ = env.reset(seed=0)
    assert observations in env.observation_space
    env.action_space.seed(0)
    assert env.step(env.action_space.sample())[0] in env.observation_space
    assert env.action_space == gym.vector.utils.batch_space(env.single_action_space, 4)


def test_worker_processes_with_shared_memory_are_refused():
    """They would hand over every observation padded to a million characters."""
    for options in ({}, {"wrappers": [lambda env: FrameStackObservation(env, 2)]}):
        with pytest.raises(ValueError, match=r'vectorization_mode="vector_entry_point" \(the fastest\) or "sync"'):
            gym.make_vec("TextSnake-v0", num_envs=2, vectorization_mode="async", **options)
    env = gym.make_vec("TextSnake-v0", num_envs=2, vectorization_mode="async", vector_kwargs={"shared_memory": False})
    ours = batch("TextSnake-v0", num_envs=2)
    try:
        assert tuple(env.reset(seed=4)[0]) == ours.reset(seed=4)[0]
        assert tuple(env.step(["up", "left"])[0]) == ours.step(["up", "left"])[0]
    finally:
        env.close()


def test_a_batch_can_be_wrapped_and_rendered():
    env = gym.wrappers.vector.RecordEpisodeStatistics(batch(num_envs=2, desc=SAFE_LAKE, render_mode="ansi"))
    env.reset(seed=0)
    for _ in range(7):
        infos = env.step(["right", "left"])[4]
    assert infos["episode"]["r"].tolist() == [1.0, 0.0]
    assert env.render()[1] == "P _ _ _ _ _ _ G"


# ---------------------------------------------------------------- several players


def test_both_registries_know_the_games():
    env: Any = pettingzoo.make("parallel", "TextSnake-v0", num_players=2, max_cycles=4)
    assert env.reset(seed=3)[0] == textgames.parallel_env("TextSnake-v0", num_players=2).reset(seed=3)[0]
    aec: Any = pettingzoo.make("aec", "TextSnake-v0", num_players=2)
    aec.reset(seed=3)
    assert aec.observe("player_0") == env.reset(seed=3)[0]["player_0"]


def test_a_missing_response_is_named():
    env = textgames.parallel_env("TextSnake-v0", num_players=2)
    with pytest.raises(ResetNeeded, match="no agent is left"):
        env.step({})
    env.reset(seed=0)
    with pytest.raises(ValueError, match="no response of player_1"):
        env.step({"player_0": "up"})


def test_pettingzoos_conversion_refuses_what_it_would_ask_out_of_turn():
    for id in ("TextSnake-v0", "TextNim-v0", "TextCleanup-v0"):
        with pytest.raises(AssertionError, match="not generally safe"):
            aec_to_parallel(textgames.aec_env(id))


# ---------------------------------------------------------------- spaces


def test_spaces_are_values():
    assert ResponseText(("a", "b")) == ResponseText(("a", "b")) != ResponseText(("a", "c"))
    assert ObservationText() == ObservationText() != ObservationText(5)
    assert pickle.loads(pickle.dumps(ResponseText(("a",)))) == ResponseText(("a",))
    space = ObservationText(10)
    assert "x" * 11 not in space
    space.seed(0)
    assert all(space.sample() in space for _ in range(20))
    assert repr(space) == "ObservationText(max_length=10)"
    assert repr(ResponseText(("a", "b"))) == "ResponseText(a, b)"


@pytest.mark.parametrize(
    "text", ["", "a b\n~", "Größe: 3 Äpfel", "神社　「七」", "🐍 ☃ ❄\ufe0f 👩\u200d🚀", "نمی\u200cدانم", "1\u202f000"]
)
def test_observations_may_be_written_in_any_script(text):
    assert text in ObservationText()


@pytest.mark.parametrize(
    "text", ["\t", "a\rb", "\x00", "\x1b[2J", "\x7f", "a\u2028b", "\u202eabc", "\u200b", "\ud800", "\ue000"]
)
def test_observations_hold_nothing_that_is_not_printable(text):
    assert text not in ObservationText()


# ---------------------------------------------------------------- one treatment of unreadable responses


def test_a_loop_of_ones_own_executes_what_a_run_executes():
    """In every form of environment and in a task, the same random action of the episode's own stream."""
    task = EpisodeTask.of("frozen-lake", 10_003, protocol="random")
    run = textgames.parallel_env(task.env_id, **task.kwargs)
    forms: list[Any] = [
        textgames.parallel_env("TextFrozenLake-v0"),
        textgames.SCENARIOS["frozen-lake"].parallel_env(),
        textgames.parallel_env(task.env_id, **EpisodeTask.of("frozen-lake", 10_003).kwargs),
    ]
    solo, vector = gym.make("TextFrozenLake-v0"), batch(num_envs=1)
    executed = []
    for seed in range(12):
        for env in (run, solo, vector, *forms):
            env.reset(seed=seed)
        told = [env.step({"player_0": "hm"})[4]["player_0"] for env in (run, *forms)]
        told += [solo.step("hm")[4], {key: value[0] for key, value in vector.step(["hm"])[4].items()}]
        assert len({info["action"] for info in told}) == len({info["invalid_action"] for info in told}) == 1
        executed.append(told[0]["action"])
    assert set(executed) == {"left", "down", "right", "up"}


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        ({}, "random: a random legal action was executed"),
        ({"invalid_action": "default"}, "default: the first legal action was executed"),
        ({"invalid_action": "terminate"}, "terminate: the episode was ended"),
    ],
)
def test_info_says_what_an_invalid_response_has_led_to_and_how_to_choose(chosen, told):
    env = make(**chosen)
    env.reset(seed=0)
    assert "invalid_action" not in env.step("left")[4]
    info = env.step("hm")[4]
    assert info["invalid_action"].startswith(told)
    assert "invalid_action=" in info["invalid_action"]
    assert all(name in info["invalid_action"] for name in ("default", "random", "noop", "terminate", "forfeit"))


def test_what_was_registered_holds_unless_a_protocol_is_asked_for():
    textgames.register("TestStrict-v0", FrozenLake, max_steps="auto", invalid_action="default")
    assert "invalid_action" not in EpisodeTask.of("TestStrict-v0", 0).kwargs
    assert EpisodeTask.of("TestStrict-v0", 0, protocol="random").kwargs["invalid_action"] == "random"
    assert EpisodeTask.of("frozen-lake", 0, protocol="default").kwargs["invalid_action"] == "default"
