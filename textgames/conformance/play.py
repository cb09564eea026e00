"""Random play for the checks, in which every answer of the game is held against the form that the contract gives it."""

import copy
import math
import pickle
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from textgames.tsmg import TSMG

ROUNDS = 40

Result = tuple[Any, dict[str, float], bool]
"""What a transition returns: the next state, the rewards, and whether the game is over."""


class ConformanceError(AssertionError):
    """A game or an environment that breaks the contract of :mod:`textgames.tsmg`."""


class Round(NamedTuple):
    """One round of random play: what the game was given and what it made of it."""

    state: Any
    joint_action: dict[str, str]
    rng: np.random.Generator  # as it was before the round
    result: Result


def require(holds: bool, message: str) -> None:
    """Raise a :class:`ConformanceError` with the message unless something holds."""
    if not holds:
        raise ConformanceError(message)


def rounds_of(game: TSMG[Any], rounds: int = ROUNDS) -> Iterator[Round]:
    """Rounds of random play, over as many episodes as it takes."""
    rng = np.random.default_rng(0)
    state = initial_state(game, rng)
    for _ in range(rounds):
        joint_action = {player: draw(game, state, player, rng) for player in playing(game, state)}
        before, kept = copy.deepcopy(rng), copy.deepcopy(state)
        result = transition(game, state, joint_action, rng)
        require(state == kept, "transition() changed the state that it was given; it must return a new one")
        yield Round(state, joint_action, before, result)
        state = initial_state(game, rng) if result[2] else result[0]


def playing(game: TSMG[Any], state: Any) -> list[str]:
    """The players whose own episodes go on."""
    told = {player: game.is_playing(state, player) for player in game.players}
    for player, answer in told.items():
        require(isinstance(answer, bool), f"is_playing() of {player} must be True or False, got {answer!r}")
    return [player for player, answer in told.items() if answer]


def draw(game: TSMG[Any], state: Any, player: str, rng: np.random.Generator) -> str:
    """One of a player's legal actions."""
    names = legal_actions(game, state, player)
    return names[int(rng.integers(len(names)))]


def legal_actions(game: TSMG[Any], state: Any, player: str) -> tuple[str, ...]:
    """A player's legal actions: at least one, none twice, all of them the game's."""
    names, told = game.legal_actions(state, player), f"legal_actions() of {player}"
    strings = isinstance(names, tuple) and all(isinstance(name, str) for name in names)
    require(strings and bool(names), f"{told} must be a tuple of at least one name, got {names!r}")
    require(len(set(names)) == len(names), f"{told} has a name twice: {names}")
    strange = [name for name in names if name not in game.actions]
    require(not strange, f"{told} has names that are not among the game's actions {game.actions}: {strange}")
    return names


def initial_state(game: TSMG[Any], rng: np.random.Generator) -> Any:
    """A first state: a value, with every player in the game."""
    state = game.initial_state(rng)
    require_value(state)
    out = [player for player in game.players if player not in playing(game, state)]
    require(not out, f"the episode of {', '.join(out)} is over in the initial state, before anything was played")
    return state


def require_value(state: Any) -> None:
    """Require that a state is a hashable value that survives copying and pickling."""
    require(state is not None, "a state must not be None: environments take that for an episode that was not started")
    like = "as tuples and frozen dataclasses of plain values are"
    try:
        copied, restored = copy.deepcopy(state), pickle.loads(pickle.dumps(state))
        equal, same_hash = bool(copied == state) and bool(restored == state), hash(restored) == hash(state)
    except Exception as error:  # a state's own methods, and pickling, can raise anything
        raise ConformanceError(
            f"states must be copied, pickled, compared and hashed {like}: {type(error).__name__}: {error}"
        ) from error
    require(equal, f"a copy of a state is not equal to it; states must be compared by value, {like}")
    require(same_hash, "equal states have different hashes; __hash__ must agree with __eq__")


def transition(game: TSMG[Any], state: Any, joint_action: Mapping[str, str], rng: np.random.Generator) -> Result:
    """Play a round and check the form of what the game returns."""
    given = dict(joint_action)
    try:
        result = game.transition(state, given, rng)
    except ValueError as error:
        raise ConformanceError(
            f"transition() refused {dict(joint_action)}, where every action is legal: {error}"
        ) from error
    require(given == joint_action, "transition() changed the joint action that it was given")
    triple = isinstance(result, tuple) and len(result) == 3
    require(triple, f"transition() must return (state, rewards, terminated), got {str(result)[:200]}")
    after, rewards, terminated = result
    require_value(after)
    require(isinstance(terminated, bool), f"terminated must be True or False, got {terminated!r}")
    complete = isinstance(rewards, dict) and set(rewards) == set(game.players)
    everybody = ", ".join(game.players)
    require(complete, f"transition() must return a reward for each of {everybody} and nobody else, got {rewards!r}")
    were_playing, are_playing = playing(game, state), playing(game, after)
    for player, reward in rewards.items():
        success = game.succeeded(after, player)
        require(isinstance(success, bool), f"succeeded() of {player} must be True or False, got {success!r}")
        finite = isinstance(reward, float) and math.isfinite(reward)
        require(finite, f"the reward of {player} must be a finite float, got {reward!r}")
        if player not in were_playing:
            require(reward == 0, f"{player} was out before the round, so nobody receives its reward of {reward!r}")
            require(player not in are_playing, f"{player} was out before the round and plays again after it")
    someone_plays = bool(are_playing)
    require(terminated or someone_plays, "nobody plays any more, but transition() did not say that the game is over")
    return after, rewards, terminated
