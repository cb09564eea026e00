"""The Gymnasium environment, batches and the PettingZoo environment: what is theirs and not the games'."""

import contextlib
import io
import pickle
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
from textgames.environments.spaces import ObservationText, ResponseText
from textgames.frozen_lake import FrozenLake

IDS = ["TextFrozenLake-v0", "TextSnake-v0"]
SAFE_LAKE = ("SFFFFFFG",)


def make(**settings: Any) -> Any:
    return gym.make("TextFrozenLake-v0", desc=SAFE_LAKE, **settings)


def test_a_step_tells_everything():
    env = make(max_steps=7)
    observation, info = env.reset(seed=0)
    assert observation.startswith("Board: 8 wide, 1 high.")
    assert info == {"success": False, "legal_actions": ("left", "down", "right", "up")}
    _, reward, terminated, truncated, info = env.step("<think>east</think><action>Right</action>")
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert info.pop("legal_actions") == ("left", "down", "right", "up")
    assert info == {"valid": True, "action": "right", "unreadable": None, "success": False}
    assert [env.step("right")[2:4] for _ in range(5)] == [(False, False)] * 5
    assert env.step("right")[1:4] == (1.0, True, False)  # it reaches the goal on the last step


@pytest.mark.parametrize("mode", ["default", "random", "terminate"])
def test_unreadable_responses(mode):
    env = make(invalid_action=mode, format_penalty=0.5)
    env.reset(seed=3)
    assert env.step("right")[1] == 0.0  # the penalty is for invalid responses alone
    _, reward, terminated, truncated, info = env.step("no idea")
    assert (info["valid"], info["unreadable"], reward, truncated) == (False, "no_tag", -0.5, False)
    assert terminated == (mode == "terminate")
    assert info["success"] is False
    assert info["invalid_action"].startswith(f"{mode}: ")
    assert all(f"{name}" in info["invalid_action"] for name in ("invalid_action=", "noop", "forfeit"))
    assert info["action"] == {"default": "left", "terminate": ""}.get(mode, info["action"])
    if mode == "random":
        actions = set()
        for seed in range(40):
            env.reset(seed=seed)
            actions.add(env.step("no idea")[4]["action"])
        assert actions == {"left", "down", "right", "up"}


def test_steps_out_of_order_are_refused():
    env = gym.make("textgames:TextFrozenLake-v0", max_steps=1)
    every: Any = textgames.parallel_env("TextKuhnPoker-v0")
    for too_early in (
        lambda: env.step("left"),
        lambda: env.render(),
        lambda: env.unwrapped.action_help,
        lambda: env.unwrapped.save_state(),
        lambda: every.save_state(),
        lambda: every.observe("player_0"),
        lambda: textgames.aec_env("TextKuhnPoker-v0").observe("player_0"),
        lambda: batch(num_envs=2).step(["left", "left"]),
    ):
        with pytest.raises(ResetNeeded, match=r"before reset\(\)|render"):
            too_early()
    with pytest.raises(ResetNeeded, match="no agent is left"):
        every.step({})
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
        ({"format_penalty": float("nan")}, ValueError, "got nan"),
        ({"format_penalty": None}, ValueError, "format_penalty must be a finite number of at least 0, got None"),
        ({"invalid_action": "defualt"}, ValueError, "did you mean 'default'"),
        ({"invalid_action": "noop"}, ValueError, "needs a game with an action that does nothing"),
    ],
)
def test_bad_settings_are_named(settings, error, message):
    for make_env in (gym.make, textgames.parallel_env, batch):
        with pytest.raises(error, match=message):
            make_env("TextFrozenLake-v0", **settings)


FORMS: dict[str, Any] = {
    "solo": gym.make,
    "vector": lambda env_id: batch(env_id, num_envs=2),
    "parallel": textgames.parallel_env,
    "aec": lambda env_id: pettingzoo.make("aec", env_id),
}


@pytest.mark.parametrize("form", FORMS)
def test_bad_reset_options_are_refused_in_every_form(form):
    env = FORMS[form]("TextFrozenLake-v0")
    for options, message in (
        ({"layoutseed": 3}, r"no option 'layoutseed' \(did you mean 'layout_seed'\?\); accepted: layout_s"),
        (5, r"the options of reset\(\) must be a dictionary with .*layout_seed.*, got 5"),
        ({"layout_seed": -1}, "layout_seed"),
        ({"layout_seed": True}, "layout_seed"),
    ):
        with pytest.raises(ValueError, match=message):
            env.reset(seed=0, options=options)
    env.reset(seed=0, options={"layout_seed": 3})


def test_what_is_no_response_is_refused():
    env, every = make(), textgames.parallel_env("TextSnake-v0", num_players=2)
    env.reset(seed=0)
    assert 2 not in env.action_space
    assert "\x00\ud800" in env.action_space
    with pytest.raises(TypeError, match="a response is a string, as a model writes it, got int: 2"):
        env.step(2)
    every.reset(seed=1)
    with pytest.raises(ValueError, match="no response of player_1"):
        every.step({"player_0": "up"})
    with pytest.raises(TypeError, match=r"step\(\) takes \{agent: response\} of every agent in .*, got None"):
        every.step(None)  # type: ignore[arg-type]
    games = batch(num_envs=2)
    games.reset(seed=0)
    before = games.states
    for given, message in (
        (None, "expected 2 responses, one a game, got None"),
        ({"left": 1, "up": 2}, "expected 2 responses, one a game, got"),
        ({"left", "up"}, "expected 2 responses, one a game, got"),
        # the word has as many letters as there are games
        ("up", r"got one string: 'up'; to give it to every game, write step\(\['up'\] \* 2\)"),
        (["right", None], "game 1: a response is a string, as a model writes it, got NoneType: None"),
    ):
        with pytest.raises(TypeError, match=message):
            games.step(given)
    with pytest.raises(ValueError, match="expected 2 responses, one a game, got 1"):
        games.step(["left"])
    assert games.states == before, "no game has moved before all responses were looked at"


def test_what_is_no_snapshot_changes_nothing():
    lake, snake = make(), gym.make("TextSnake-v0")
    lake.reset(seed=1)
    snake.reset(seed=1)
    foreign, before = lake.unwrapped.save_state(), snake.unwrapped.save_state()
    for env in (snake.unwrapped, textgames.parallel_env("TextSnake-v0")):
        with pytest.raises(TypeError, match=r"a snapshot is what save_state\(\) returned, got"):
            env.restore_state((1, 2))  # type: ignore[union-attr]
    with pytest.raises(TypeError):  # of another game
        snake.unwrapped.restore_state(foreign)
    assert snake.unwrapped.save_state() == before


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


def test_the_live_board_is_drawn_over_itself_on_a_terminal_only(capsys):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    env, live = make(render_mode="human"), Terminal()
    env.reset(seed=0)
    env.step("right")
    assert capsys.readouterr().out == "step 0\nP _ _ _ _ _ _ G\n\nstep 1\n_ P _ _ _ _ _ G\n\n"
    with pytest.warns(UserWarning, match="humman"), pytest.raises(ValueError, match="did you mean 'human'"):
        gym.make("TextSnake-v0", render_mode="humman")
    with contextlib.redirect_stdout(live):
        env.step("right")
    assert live.getvalue().startswith("\x1b[H\x1b[2J")
    assert "48;2;213;94;0" in live.getvalue()


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


def test_batches_take_one_seed_each():
    env = batch(num_envs=3)
    assert env.reset(seed=[7, 8, 9])[0] == env.reset(seed=7)[0]
    layouts = env.reset(seed=[1, 2, 3], options={"layout_seed": 4})[0]
    assert len(set(layouts)) == 1
    assert env.reset(seed=0, options={"layout_seed": [7, 8, 9]})[0] == env.reset(seed=7)[0]
    with pytest.raises(ValueError, match="3 of them, got 2"):
        env.reset(seed=[1, 2])
    assert env.reset(seed=np.arange(7, 10))[0] == env.reset(seed=np.int64(7))[0] == env.reset(seed=7)[0]


def test_what_a_batch_cannot_take_is_refused():
    env = batch(num_envs=2)
    for seed, message in ((1.5, "(?i)seed must be"), ("x", "seed must be one whole number or 2 of them, got 'x'")):
        with pytest.raises((ValueError, gym.error.Error), match=message):
            env.reset(seed=seed)
    env.reset(seed=0)
    for mask in ([True, False], np.array([1, 0]), np.array([True]), np.array([False, False])):
        with pytest.raises(ValueError, match="reset_mask"):
            env.reset(options={"reset_mask": mask})
    with pytest.raises(ValueError, match="num_envs"):
        batch(num_envs=0)
    with pytest.raises(ValueError, match="did you mean 'NextStep'"):
        batch(autoreset_mode="NextSteps")
    drawn = gym.wrappers.vector.RecordEpisodeStatistics(batch(num_envs=2, desc=SAFE_LAKE, render_mode="ansi"))
    drawn.reset(seed=0)
    assert drawn.render()[1] == "P _ _ _ _ _ _ G"


def test_worker_processes_with_shared_memory_are_refused():
    """They would hand over every observation padded to a million characters."""
    for options in ({}, {"wrappers": [lambda env: FrameStackObservation(env, 2)]}):
        with pytest.raises(ValueError, match=r'vectorization_mode="vector_entry_point" \(the fastest\) or "sync"'):
            gym.make_vec("TextSnake-v0", num_envs=2, vectorization_mode="async", **options)
    own: Any = {"vectorization_mode": "async", "vector_kwargs": {"shared_memory": False}}
    env = gym.make_vec("TextSnake-v0", num_envs=2, **own)
    try:
        assert tuple(env.reset(seed=4)[0]) == batch("TextSnake-v0", num_envs=2).reset(seed=4)[0]
    finally:
        env.close()


def test_games_of_several_players_are_pettingzoos():
    env: Any = pettingzoo.make("parallel", "TextSnake-v0", num_players=2, max_cycles=4)
    assert env.reset(seed=3)[0] == textgames.parallel_env("TextSnake-v0", num_players=2).reset(seed=3)[0]
    aec: Any = pettingzoo.make("aec", "TextSnake-v0", num_players=2)
    aec.reset(seed=3)
    assert aec.observe("player_0") == env.reset(seed=3)[0]["player_0"]
    with pytest.raises(AssertionError, match="not generally safe"):  # it would ask out of turn
        aec_to_parallel(textgames.aec_env("TextNim-v0"))
    with pytest.raises(ValueError, match="parallel_env"):
        gym.make("TextSnake-v0", num_players=2, opponents=None)
    gym.make("TextSnake-v0", num_players=2).reset(seed=0)  # as registered, the others play at random


def test_spaces_are_values_and_samples_are_commands():
    assert ResponseText(("a", "b")) == ResponseText(("a", "b")) != ResponseText(("a", "c"))
    assert ObservationText() == ObservationText() != ObservationText(5)
    assert pickle.loads(pickle.dumps(ResponseText(("a",)))) == ResponseText(("a",))
    assert repr(ResponseText(("a", "b"))) == "ResponseText(a, b)"
    space, env = ObservationText(10), make()
    assert repr(space) == "ObservationText(max_length=10)"
    assert "x" * 11 not in space
    space.seed(0)
    env.action_space.seed(0)
    assert all(space.sample() in space for _ in range(20))
    assert {env.action_space.sample() for _ in range(60)} == {"left", "down", "right", "up"}
    with pytest.raises(ValueError, match="no mask"):
        env.action_space.sample(mask=(1, None))


def test_observations_are_printable_text_of_any_script():
    for text in ("", "Größe: 3 Äpfel", "🐍 ☃ ❄\ufe0f 👩\u200d🚀", "1\u202f000"):
        assert text in ObservationText()
    for text in ("\t", "a\rb", "\x00", "\x1b[2J", "\x7f", "a\u2028b", "\u202eabc", "\u200b", "\ud800", "\ue000"):
        assert text not in ObservationText()


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


def test_what_was_registered_holds_unless_a_protocol_is_asked_for():
    textgames.register("TestStrict-v0", FrozenLake, max_steps="auto", invalid_action="default")
    assert "invalid_action" not in EpisodeTask.of("TestStrict-v0", 0).kwargs
    assert EpisodeTask.of("TestStrict-v0", 0, protocol="random").kwargs["invalid_action"] == "random"
    assert EpisodeTask.of("frozen-lake", 0, protocol="default").kwargs["invalid_action"] == "default"
