"""The checks of a game's environments: Gymnasium's, PettingZoo's and the batch."""

import contextlib
import copy
import io
import pickle
import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded

from textgames.conformance.play import ROUNDS, ConformanceError, draw, require, rounds_of, written
from textgames.environments.aec import TextAECEnv
from textgames.environments.rules import ONE_SEAT_SETTINGS
from textgames.registry import aec_env, game_of, parallel_env, settings_of
from textgames.rounds import rounds_of_play

_FRAMES = 8  # so many pictures of an episode are compared


def check_gymnasium(id: str, settings: Mapping[str, Any]) -> None:
    """Run Gymnasium's ``check_env``, its pictures too, without a warning; others play inside."""
    from gymnasium.utils.env_checker import check_env

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with contextlib.redirect_stdout(io.StringIO()):  # render_mode="human" draws on the terminal
            check_env(gym.make(id, **_alone(id, settings)).unwrapped)


def _alone(id: str, settings: Mapping[str, Any]) -> Mapping[str, Any]:
    others = len(game_of(id, **settings).players) > 1
    return {"opponents": "random", **settings} if others else settings


def check_episodes(id: str, settings: Mapping[str, Any]) -> None:
    """Check that episodes end once, are refused afterwards, and never both terminate and truncate."""
    # max_cycles, since a level has a horizon of its own that max_steps doesn't change
    few = max(5, int(game_of(id, **settings).shortest_win or 0))
    env = parallel_env(id, **({} if settings.get("max_steps") else {"max_cycles": few}), **settings)
    _require_reset_needed(env, "before reset()")
    for seed in range(5):
        env.reset(seed=seed)
        rng, rounds = np.random.default_rng(seed), 0
        while env.agents:
            playing = list(env.agents)
            actions = _random_responses(env, rng)
            _, _, terminations, truncations, infos = env.step(actions)
            rounds += 1
            for agent in playing:
                both = terminations[agent] and truncations[agent]
                require(not both, f"{agent}'s episode both terminated and truncated")
                wrote = actions.get(agent, "")
                require(infos[agent]["valid"] is True, f"the legal action {wrote!r} came back as not valid")
        limit = env.rules.max_steps
        require(limit is not None and rounds <= limit, f"an episode of max_steps={limit} took {rounds} rounds")
        _require_reset_needed(env, "after the end of the episode")


def _require_reset_needed(env: Any, when: str) -> None:
    try:
        env.step({})
    except ResetNeeded:
        return
    raise ConformanceError(f"step() {when} must raise gymnasium.error.ResetNeeded")


def check_determinism(id: str, settings: Mapping[str, Any]) -> None:
    """Check that equal seeds and responses give one episode: fresh, in a used environment, and beside another one."""
    fresh = list(_play(parallel_env(id, **settings), 11))
    used, beside = parallel_env(id, **settings), parallel_env(id, **settings)
    beside.reset(seed=1)
    list(_play(used, 5))
    again, rng = [], np.random.default_rng(0)
    for round_ in _play(used, 11):
        again.append(round_)
        if beside.agents:
            beside.step(_random_responses(beside, rng))
    require(again == fresh, "the same seed and responses gave another episode in an environment that was used before")
    layouts = set()
    for seed in range(3):
        used.reset(seed=seed, options={"layout_seed": 3})
        layouts.add(used.state())
    used.reset(seed=3)
    require(layouts == {used.state()}, 'options={"layout_seed": 3} must give the initial state of reset(seed=3)')


def check_snapshots(id: str, settings: Mapping[str, Any]) -> None:
    """Check that an environment can be copied, and saved and restored, in mid-episode, and then plays the same."""
    env: Any = parallel_env(id, **settings)
    read, _ = env.reset(seed=2)
    twin, snapshot = copy.deepcopy(env), pickle.loads(pickle.dumps(env.save_state()))
    first, end = list(_play_on(env, 2)), env.save_state()
    require(list(_play_on(twin, 2)) == first, "a deep copy of the environment went on differently")
    other: Any = parallel_env(id, **settings)  # it was never reset
    for each in (env, other):
        require(each.restore_state(snapshot) == read, "restore_state() must return what was read in the state")
        require(list(_play_on(each, 2)) == first, "after restore_state() the episode went on differently")
        each.restore_state(end)
        require(not each.agents or len(first) == ROUNDS, "after restore_state() an episode that was over goes on")


def check_batches(id: str, settings: Mapping[str, Any]) -> None:
    """Check that the vector environment does step by step what single ones do with the same seeds."""
    settings = _alone(id, settings)
    num_envs = 3
    singles: list[Any] = [gym.make(id, **settings) for _ in range(num_envs)]
    batch = gym.make_vec(id, num_envs=num_envs, vectorization_mode="vector_entry_point", **settings)
    observations, _ = batch.reset(seed=20)
    expected = tuple(env.reset(seed=20 + i)[0] for i, env in enumerate(singles))
    require(observations == expected, f"reset: {observations!r} differs from {expected!r}")
    rng = np.random.default_rng(0)
    over = [False] * num_envs
    for _ in range(ROUNDS):
        actions = [_some_response(env.unwrapped, rng) for env in singles]
        observations, rewards, terminations, truncations, _ = batch.step(actions)
        for i, env in enumerate(singles):
            single = (env.reset()[0], 0.0, False, False) if over[i] else env.step(actions[i])[:4]
            got = (observations[i], rewards[i], terminations[i], truncations[i])
            require(got == single, f"step: the batch gave {got!r}, the single environment {single!r}")
            over[i] = single[2] or single[3]


def _some_response(env: Any, rng: np.random.Generator) -> str:
    game = env.game
    if game.actions:
        return written(game, game.actions[int(rng.integers(len(game.actions)))])
    player = game.players[0]
    my_turn = player in game.to_move(env.state)
    return written(game, draw(game, env.state, player, rng)) if my_turn else "too late"


def check_rewards(id: str, settings: Mapping[str, Any]) -> None:
    """Check that in every form of environment the steps pay in all what the rules paid, also what is paid late."""
    for seed in range(3):
        env: Any = parallel_env(id, **settings)
        env.reset(seed=seed)
        game, limit = env.game, env.rules.max_steps or ROUNDS
        rng: Any = np.random.default_rng()
        rng.bit_generator.state = env.save_state().rng_state
        draws, paid, joint_actions = np.random.default_rng(seed), dict.fromkeys(game.players, 0.0), []
        choose = partial(draw, game, rng=draws)
        for each in rounds_of_play(game, env.state(), limit, rng, choose):
            joint_actions.append({player: written(game, action) for player, action in each.joint_action.items()})
            for player, reward in each.rewards.items():
                paid[player] += reward
        limited = {**settings, "max_cycles": limit}  # both end with the last of these rounds
        parallel, aec = parallel_env(id, **limited), aec_env(id, **limited)
        sums = dict.fromkeys(paid, 0.0)
        parallel.reset(seed=seed)
        for joint in joint_actions:
            for player, reward in parallel.step(joint)[1].items():
                sums[player] += reward
        _require_equal_sums(sums, paid, "the ParallelEnv")
        sums = dict.fromkeys(paid, 0.0)
        aec.reset(seed=seed)
        responses = iter([joint[player] for joint in joint_actions for player in paid if player in joint])
        for player in aec.agent_iter():
            _, reward, terminated, truncated, _ = aec.last()
            sums[player] += reward
            aec.step(None if terminated or truncated else next(responses))
        _require_equal_sums(sums, paid, "the AECEnv")


def _require_equal_sums(sums: Mapping[str, float], paid: Mapping[str, float], form: str) -> None:
    for player, reward in paid.items():
        close = abs(sums[player] - reward) < 1e-9
        require(close, f"the rewards of {player} in {form} sum to {sums[player]:g}, the rules paid {reward:g}")


def check_parallel(id: str, settings: Mapping[str, Any]) -> None:
    """Run PettingZoo's ``parallel_api_test`` and ``parallel_seed_test`` without a warning."""
    from pettingzoo.test import parallel_api_test, parallel_seed_test

    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):  # it prints that it passed
        warnings.simplefilter("error")
        parallel_api_test(parallel_env(id, **settings), num_cycles=100)
        parallel_seed_test(lambda: parallel_env(id, **settings))


def check_aec(id: str, settings: Mapping[str, Any]) -> None:
    """Run PettingZoo's ``api_test`` of the form in which players are asked one after the other."""
    from pettingzoo.test import api_test

    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("error")
        # it would rather have arrays and numbers; that these are texts is the point
        warnings.filterwarnings("ignore", message=".* for each agent probably should be|Observation is not a NumPy")
        given = {**settings_of(id), **settings}
        api_test(_InDictionary(**{k: v for k, v in given.items() if k not in ONE_SEAT_SETTINGS}), num_cycles=50)


class _InDictionary(TextAECEnv):
    """Observations as ``{"text": ...}``: the test takes a bare observation for an array and asks for its type."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._spaces = {agent: gym.spaces.Dict(text=space) for agent, space in self.observation_spaces.items()}

    def observation_space(self, agent: str) -> Any:
        return self._spaces[agent]

    def observe(self, agent: str) -> Any:
        return {"text": super().observe(agent)}


def check_rendering(id: str, settings: Mapping[str, Any]) -> None:
    """Check that it is drawn, in pictures of one size, and that a player's board shows no more than its text tells."""
    env: Any = parallel_env(id, **settings, render_mode="ansi")
    env.reset(seed=0)
    require(isinstance(env.render(), str), "render_mode='ansi' must give a string")
    for name, meant in (("palette", env.game.palette), ("legend", env.game.legend)):
        strange = [mark for mark in meant if len(mark) != 1]
        require(not strange, f"the {name} is of the board's characters, of which {strange} are none")
    for mark, colour in env.game.palette.items():
        known = len(colour) == 3 and all(isinstance(part, int) and 0 <= part <= 255 for part in colour)
        require(known, f"the colour of {mark!r} must be (red, green, blue), each from 0 to 255, got {colour!r}")
    rng, sizes = np.random.default_rng(0), set()
    env = parallel_env(id, **settings, render_mode="rgb_array")
    env.reset(seed=0)
    for _ in range(_FRAMES):
        frame = env.render()
        shown = isinstance(frame, np.ndarray) and frame.dtype == np.uint8 and frame.ndim == 3 and frame.shape[2] == 3
        require(shown, "render_mode='rgb_array' must give an array of shape (height, width, 3), uint8")
        sizes.add(frame.shape)
        if env.agents:
            env.step(_random_responses(env, rng))
    require(len(sizes) == 1, f"all pictures of an episode must have one size, got {sorted(sizes)}")
    boards: dict[tuple[str, str], Any] = {}
    for state, player in ((each.state, player) for each in rounds_of(env.game) for player in env.game.players):
        read, seen = env.game.observe(state, player), env.game.seen_by(state, player)
        alike = boards.setdefault((player, read), seen) == seen
        require(alike, f"seen_by() shows {player} two boards where it reads one text, {read!r}")


def _play(env: Any, seed: int) -> Iterator[Any]:
    yield env.reset(seed=seed)
    yield from _play_on(env, seed)


def _play_on(env: Any, seed: int) -> Iterator[Any]:
    rng = np.random.default_rng(seed)
    for _ in range(ROUNDS):
        if not env.agents:
            return
        yield env.step(_random_responses(env, rng))


def _random_responses(env: Any, rng: np.random.Generator) -> dict[str, str]:
    return {agent: written(env.game, draw(env.game, env.state(), agent, rng)) for agent in env.to_move}
