"""What every registered game must do, as checks that run on yours too.

::

    import textgames.conformance
    textgames.conformance.check("MyGame-v0")          # raises ConformanceError with what is wrong
    textgames.conformance.check("MyGame-v0", size=5)  # with other settings

Each check takes an id and settings; :data:`CHECKS` has them by name, for a parametrised test.
"""

import contextlib
import copy
import io
import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded

from textgames.names import did_you_mean
from textgames.registry import game_of, parallel_env, settings_of
from textgames.tsmg import TSMG

_ROUNDS, _EPISODES = 40, 5
_NOT_ACTIONS = ("", " \n", "no such action", "<action></action>", "<action>", "</action>", "☃\x00\u2028", "y" * 10_000)


class ConformanceError(AssertionError):
    """A game or an environment that breaks the contract of :mod:`textgames.tsmg`."""


def check(id: str, **settings: Any) -> None:
    """Run every check on an id.

    Args:
        id: a registered id.
        **settings: settings of the game or its environment that differ from those it was registered with.

    Raises:
        ConformanceError: the first check that fails; the message says which one and what it saw.
        ValueError: no such id.
    """
    settings_of(id)
    for name, run in CHECKS.items():
        try:
            run(id, settings)
        except ConformanceError as error:
            raise ConformanceError(f"{id}: {name}: {error}") from error


def transcript(id: str, *, seed: int, responses: tuple[str, ...] = (), **settings: Any) -> str:
    """One episode as text: what every player read and wrote, and what came of it.

    Players write ``responses`` in turn, then actions drawn with ``seed``, to the episode's end (or 100 rounds).
    """
    env = parallel_env(id, **settings)
    rng = np.random.default_rng(seed)
    observations, _ = env.reset(seed=seed)
    lines = [f"# {id} {settings or ''}".rstrip() + f", seed {seed}"]
    lines += [f"## instructions for {agent}\n{env.instructions(agent)}" for agent in env.agents]
    written = iter(responses)
    for round_ in range(100):
        if not env.agents:
            break
        actions = {agent: next(written, None) or _draw(env.game, env.state(), agent, rng) for agent in env.agents}
        lines += [f"## round {round_}, {agent} reads\n{observations[agent]}" for agent in env.agents]
        observations, rewards, terminations, truncations, infos = env.step(actions)
        for agent in rewards:
            end = " terminated" * terminations[agent] + " truncated" * truncations[agent]
            how = infos[agent]["unreadable"] or "valid"
            executed = f"executed {infos[agent]['action']!r}, reward {rewards[agent]:g}{end}"
            lines.append(f"## {agent} writes {actions[agent]!r}\n{how}, {executed}")
    lines += [f"## {agent} reads at the end\n{text}" for agent, text in observations.items()]
    return "\n".join(lines) + "\n"


# -------------------------------------------------------------------- rules


def check_states(id: str, settings: Mapping[str, Any]) -> None:
    """States are hashable values that survive copying and pickling, and rounds don't change them."""
    game = game_of(id, **settings)
    for state, joint_action, rng in _rounds(game):
        before = hash(state)
        _require(copy.deepcopy(state) == state, "a deep copy of a state is not equal to it")
        _require(pickle.loads(pickle.dumps(state)) == state, "a pickled and restored state is not equal to it")
        again = copy.deepcopy(rng)
        first = game.transition(state, joint_action, rng)
        _require(hash(state) == before, "transition() changed the state that it was given")
        _require(game.transition(state, joint_action, again) == first, "equal generators gave different transitions")
        _require(set(first[1]) == set(game.players), f"rewards must be of all players, got those of {set(first[1])}")
        _require(all(np.isfinite(reward) for reward in first[1].values()), f"rewards must be finite, got {first[1]}")
        _require(isinstance(first[2], bool), f"terminated must be a bool, got {first[2]!r}")
    same = [game.initial_state(np.random.default_rng(3)) for _ in range(2)]
    _require(same[0] == same[1], "equal generators gave different initial states")


def check_actions(id: str, settings: Mapping[str, Any]) -> None:
    """Legal actions are names of the game's, and whatever else is given to the rules is refused."""
    game = game_of(id, **settings)
    for state, joint_action, rng in _rounds(game):
        for player in game.players:
            legal = game.legal_actions(state, player)
            _require(bool(legal), f"{player} has no legal action")
            _require(set(legal) <= set(game.actions), f"legal actions {legal} are not all among {game.actions}")
        for wrong in ({}, {**joint_action, game.players[0]: "no such action"}):
            if game.is_playing(state, game.players[0]):
                try:
                    game.transition(state, wrong, rng)
                except ValueError:
                    continue
                _require(False, f"transition() accepted {wrong}; it must raise ValueError")
        break


def check_interpretation(id: str, settings: Mapping[str, Any]) -> None:
    """Every legal action can be written bare or in a tag, and nothing else is ever taken for one."""
    game = game_of(id, **settings)
    for state, _, _ in _rounds(game, 10):
        for player in game.players:
            for name in game.legal_actions(state, player):
                for text in (
                    name,
                    f" {name.upper()}\n",
                    f"I go <action> {name} </action>.",
                    f"<action>{name}</action>",
                ):
                    got = game.interpret(text, state, player)
                    _require(got == name, f"{text!r} must be read as {name!r}, got {got!r}")
                both = f"<action>{name}</action><action>{name}</action>"
                _require(game.interpret(both, state, player) is None, f"two action tags must be invalid: {both!r}")
            for text in _NOT_ACTIONS:
                _require(game.interpret(text, state, player) is None, f"{text[:40]!r} must be invalid")
                _require(bool(game.why_invalid(text, state, player).reason), f"no reason why {text[:40]!r} is invalid")


def check_texts(id: str, settings: Mapping[str, Any]) -> None:
    """Observations depend on the state alone and lie in their space; instructions name every action."""
    game = game_of(id, **settings)
    env = parallel_env(id, **settings)
    for player in game.players:
        told = game.instructions(player)
        for action in game.actions:
            _require(action in told, f"the instructions for {player} don't name the action {action!r}")
    for state, _, _ in _rounds(game):
        for player in game.players:
            text = game.observe(state, player)
            _require(game.observe(copy.deepcopy(state), player) == text, "observe() gave two texts for one state")
            _require(text in env.observation_space(player), f"an observation is outside of its space: {text[:200]!r}")
    fresh = game_of(id, **settings)
    state = game.initial_state(np.random.default_rng(5))
    _require(
        fresh.observe(fresh.initial_state(np.random.default_rng(5)), game.players[0])
        == game.observe(state, game.players[0]),
        "what was observed before changes what is observed: observe() depends on history",
    )


# -------------------------------------------------------------------- environments


def check_gymnasium(id: str, settings: Mapping[str, Any]) -> None:
    """``gymnasium.utils.env_checker.check_env`` without a warning (games with one player)."""
    from gymnasium.utils.env_checker import check_env

    if len(game_of(id, **settings).players) != 1:
        return
    env = gym.make(id, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            check_env(env.unwrapped, skip_render_check=True)
        except Exception as error:  # whatever it is, it is a failed check
            raise ConformanceError(f"check_env: {type(error).__name__}: {error}") from error


def check_episodes(id: str, settings: Mapping[str, Any]) -> None:
    """Episodes end once, are refused afterwards, and never both terminate and truncate."""
    env = parallel_env(id, **{"max_steps": 5, **settings})
    try:
        env.step({})
    except ResetNeeded:
        pass
    else:
        _require(False, "step() before reset() must raise gymnasium.error.ResetNeeded")
    for seed in range(_EPISODES):
        env.reset(seed=seed)
        rng = np.random.default_rng(seed)
        rounds = 0
        while env.agents:
            playing = list(env.agents)
            actions = {agent: _draw(env.game, env.state(), agent, rng) for agent in playing}
            _, rewards, terminations, truncations, infos = env.step(actions)
            rounds += 1
            for agent in playing:
                _require(
                    not (terminations[agent] and truncations[agent]), f"{agent}'s episode both terminated and truncated"
                )
                _require(infos[agent]["valid"] is True, f"the legal action {actions[agent]!r} came back as not valid")
                _require(isinstance(rewards[agent], float), f"a reward must be a float, got {rewards[agent]!r}")
        _require(rounds <= 5 or "max_steps" in settings, f"an episode of max_steps=5 took {rounds} rounds")
        try:
            env.step({})
        except ResetNeeded:
            continue
        _require(False, "step() after the end of the episode must raise gymnasium.error.ResetNeeded")


def check_determinism(id: str, settings: Mapping[str, Any]) -> None:
    """Same seed and responses, same episode: from a fresh environment, a used one, and beside another one."""
    fresh = list(_play(parallel_env(id, **settings), 11))
    used, beside = parallel_env(id, **settings), parallel_env(id, **settings)
    beside.reset(seed=1)
    list(_play(used, 5))
    again = []
    for round_ in _play(used, 11):
        again.append(round_)
        if beside.agents:
            beside.step({agent: beside.game.legal_actions(beside.state(), agent)[0] for agent in beside.agents})
    _require(again == fresh, "the same seed and responses gave another episode in an environment that was used before")
    layouts = set()
    for seed in range(3):
        used.reset(seed=seed, options={"layout_seed": 3})
        layouts.add(used.state())
    used.reset(seed=3)
    _require(layouts == {used.state()}, 'options={"layout_seed": 3} must give the initial state of reset(seed=3)')


def check_snapshots(id: str, settings: Mapping[str, Any]) -> None:
    """An environment can be copied and pickled in mid-episode, and goes on the same (games with one player)."""
    if len(game_of(id, **settings).players) != 1:
        return
    env: Any = gym.make(id, **settings).unwrapped
    env.reset(seed=2)
    legal = env.game.legal_actions(env.state, env.game.players[0])
    twin = copy.deepcopy(env)
    snapshot = pickle.loads(pickle.dumps(env.save_state()))
    first = _play_on(env, legal)
    env.restore_state(snapshot)
    _require(_play_on(env, legal) == first, "after restore_state() the episode went on differently")
    _require(_play_on(twin, legal) == first, "a deep copy of the environment went on differently")


def check_batches(id: str, settings: Mapping[str, Any]) -> None:
    """The vector environment does step by step what single ones do with the same seeds (games with one player)."""
    game = game_of(id, **settings)
    if len(game.players) != 1:
        return
    num_envs = 3
    singles = [gym.make(id, **settings) for _ in range(num_envs)]
    batch = gym.make_vec(id, num_envs=num_envs, vectorization_mode="vector_entry_point", **settings)
    observations, _ = batch.reset(seed=20)
    expected = tuple(env.reset(seed=20 + i)[0] for i, env in enumerate(singles))
    _require(observations == expected, f"reset: {observations!r} differs from {expected!r}")
    rng = np.random.default_rng(0)
    over = [False] * num_envs
    for _ in range(_ROUNDS):
        actions = [game.actions[int(rng.integers(len(game.actions)))] for _ in range(num_envs)]
        observations, rewards, terminations, truncations, _ = batch.step(actions)
        for i, env in enumerate(singles):
            single = (env.reset()[0], 0.0, False, False) if over[i] else env.step(actions[i])[:4]
            got = (observations[i], rewards[i], terminations[i], truncations[i])
            _require(got == single, f"step: the batch gave {got!r}, the single environment {single!r}")
            over[i] = single[2] or single[3]


def check_parallel(id: str, settings: Mapping[str, Any]) -> None:
    """PettingZoo's ``parallel_api_test``."""
    from pettingzoo.test import parallel_api_test

    env = parallel_env(id, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # it prints that it passed
                parallel_api_test(env, num_cycles=100)
        except Exception as error:  # whatever it is, it is a failed check
            raise ConformanceError(f"parallel_api_test: {type(error).__name__}: {error}") from error


def check_rendering(id: str, settings: Mapping[str, Any]) -> None:
    """Text for every game, pictures for those with a board."""
    env = parallel_env(id, **settings, render_mode="ansi")
    env.reset(seed=0)
    _require(isinstance(env.render(), str), "render_mode='ansi' must give a string")
    if type(env.game).board is not TSMG.board:
        env = parallel_env(id, **settings, render_mode="rgb_array")
        env.reset(seed=0)
        frame = env.render()
        _require(
            isinstance(frame, np.ndarray) and frame.dtype == np.uint8 and frame.ndim == 3 and frame.shape[2] == 3,
            "render_mode='rgb_array' must give an array of shape (height, width, 3), uint8",
        )


CHECKS: Mapping[str, Callable[[str, Mapping[str, Any]], None]] = MappingProxyType(
    {
        run.__name__.removeprefix("check_"): run
        for run in (
            check_states,
            check_actions,
            check_interpretation,
            check_texts,
            check_gymnasium,
            check_episodes,
            check_determinism,
            check_snapshots,
            check_batches,
            check_parallel,
            check_rendering,
        )
    }
)
"""The checks by name, in the order in which :func:`check` runs them."""


def run_check(name: str, id: str, **settings: Any) -> None:
    """Run one check by name.

    Raises:
        ConformanceError: it fails.
        ValueError: no such check.
    """
    if name not in CHECKS:
        raise ValueError(f"no check {name!r}; there are {', '.join(CHECKS)}{did_you_mean(name, CHECKS)}")
    CHECKS[name](id, settings)


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ConformanceError(message)


def _draw(game: TSMG[Any], state: Any, player: str, rng: np.random.Generator) -> str:
    legal = game.legal_actions(state, player)
    return legal[int(rng.integers(len(legal)))]


def _rounds(game: TSMG[Any], rounds: int = _ROUNDS) -> Iterator[tuple[Any, dict[str, str], np.random.Generator]]:
    """States of random play with a joint action and a generator for each, over as many episodes as it takes."""
    rng = np.random.default_rng(0)
    state = game.initial_state(rng)
    for _ in range(rounds):
        joint_action = {player: _draw(game, state, player, rng) for player in game.players}
        yield state, joint_action, copy.deepcopy(rng)
        state, _, over = game.transition(state, joint_action, rng)
        if over:
            state = game.initial_state(rng)


def _play(env: Any, seed: int) -> Iterator[Any]:
    """Everything an episode of random play tells, round by round."""
    rng = np.random.default_rng(seed)
    yield env.reset(seed=seed)
    for _ in range(_ROUNDS):
        if not env.agents:
            return
        yield env.step({agent: _draw(env.game, env.state(), agent, rng) for agent in env.agents})


def _play_on(env: Any, legal: tuple[str, ...]) -> list[Any]:
    told = []
    for i in range(_ROUNDS):
        told.append(env.step(legal[i % len(legal)]))
        if told[-1][2] or told[-1][3]:
            break
    return told
