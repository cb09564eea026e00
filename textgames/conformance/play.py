"""Random play for the checks, every answer held against the form of the contract, and an episode as text."""

import copy
import math
import pickle
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from textgames.registry import parallel_env
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
    """Yield rounds of random play, over as many episodes as it takes."""
    rng = np.random.default_rng(0)
    state, played = initial_state(game, rng), 0
    for _ in range(rounds):
        joint_action = {player: draw(game, state, player, rng) for player in to_move(game, state)}
        before, kept = copy.deepcopy(rng), copy.deepcopy(state)
        result = transition(game, state, joint_action, rng)
        require(state == kept, "transition() changed the state that it was given; it must return a new one")
        yield Round(state, joint_action, before, result)
        played += 1
        over = result[2] or played != game.longest_episode
        require(over, f"an episode goes on after {played} rounds, which longest_episode says is the most")
        state, played = (initial_state(game, rng), 0) if result[2] else (result[0], played)


def playing(game: TSMG[Any], state: Any) -> list[str]:
    """Return the players whose own episodes aren't over."""
    told = {player: game.is_playing(state, player) for player in game.players}
    for player, answer in told.items():
        require(isinstance(answer, bool), f"is_playing() of {player} must be True or False, got {answer!r}")
    return [player for player, answer in told.items() if answer]


def to_move(game: TSMG[Any], state: Any) -> list[str]:
    """Return the players to move before the end: players who play, at least one, in order, none twice."""
    told, players = game.to_move(state), playing(game, state)
    known = isinstance(told, tuple) and all(player in game.players for player in told)
    require(known, f"to_move() must be a tuple of players, of {', '.join(game.players)}, got {told!r}")
    in_order = list(told) == [player for player in game.players if player in told]
    require(in_order, f"to_move() must name each player once, in the order of players, got {told}")
    require(bool(told), "to_move() must name at least one player while the game is not over, got ()")
    out = [player for player in told if player not in players]
    require(not out, f"to_move() names {', '.join(out)}, whose own episode is over")
    return list(told)


def draw(game: TSMG[Any], state: Any, player: str, rng: np.random.Generator) -> str:
    """Return a legal action of a player, drawn at random."""
    names = legal_actions(game, state, player)
    action = game.sample_action(state, player, rng)
    require(isinstance(action, str), f"sample_action() of {player} must be a string, got {action!r}")
    require(not names or action in names, f"sample_action() of {player} gave {action!r}, which is not legal: {names}")
    return action


def legal_actions(game: TSMG[Any], state: Any, player: str) -> tuple[str, ...]:
    """Return the legal actions of a player who is to move: none twice, all the game's; none if they are open."""
    names, told = game.legal_actions(state, player), f"legal_actions() of {player}"
    strings = isinstance(names, tuple) and all(isinstance(name, str) for name in names)
    require(strings, f"{told} must be a tuple of names, got {names!r}")
    enough = bool(names) or has_default(game, state, player)
    require(enough, f"{told} must be a tuple of at least one name, got {names!r}")
    require(len(set(names)) == len(names), f"{told} has a name twice: {names}")
    strange = [name for name in names if name not in game.actions]
    require(
        not strange or not game.actions, f"{told} has names that are not among the game's {game.actions}: {strange}"
    )
    return names


def has_default(game: TSMG[Any], state: Any, player: str) -> bool:
    """Return whether there is a default action without a list: the base class takes the first legal one."""
    try:
        return bool(game.default_action(state, player))
    except IndexError:
        return False


def written(game: TSMG[Any], action: str) -> str:
    """Return an action as a response: bare where the game takes that, else in its tag."""
    return action if game.bare_responses else f"<action>{action}</action>"


def initial_state(game: TSMG[Any], rng: np.random.Generator) -> Any:
    """Return a first state: a value, with every player in the game."""
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
            require(player not in are_playing, f"{player} was out before the round and plays again after it")
            late = f"{player} was out before the round and is paid {reward!r}, but pays_late is False"
            require(reward == 0 or game.pays_late is not False, late)
    someone_plays = bool(are_playing)
    require(terminated or someone_plays, "nobody plays any more, but transition() did not say that the game is over")
    if not terminated:
        to_move(game, after)
    return after, rewards, terminated


def transcript(id: str, *, seed: int, responses: tuple[str, ...] = (), shown: int = 100, **settings: Any) -> str:
    """Return one episode as text, to be read by people and kept as a golden file.

    It tells what every player read and wrote, and what came of it.

    Players write ``responses`` in turn, then actions drawn with ``seed``, to the episode's end (or 100 rounds). What
    follows the first ``shown`` rounds is a single line, whose digest changes with any of it.
    """
    # "default" draws nothing: what follows an unreadable response is the same whatever an environment's own choice is
    env = parallel_env(id, **{"invalid_action": "default", **settings})
    rng = np.random.default_rng(seed)
    observations, _ = env.reset(seed=seed)
    lines = [f"# {id} {settings or ''}".rstrip() + f", seed {seed}"]
    lines += [f"## instructions for {agent}\n{env.instructions[agent]}" for agent in env.agents]
    given = iter(responses)
    first: list[str] = []
    for round_ in range(100):
        if not env.agents:
            break
        if round_ == shown:
            first, lines = lines, []
        actions = {
            agent: next(given, None) or written(env.game, draw(env.game, env.state(), agent, rng))
            for agent in env.to_move
        }
        lines += [f"## round {round_}, {agent} reads\n{observations[agent]}" for agent in env.to_move]
        observations, rewards, terminations, truncations, infos = env.step(actions)
        for agent in rewards:
            end = " terminated" * terminations.get(agent, False) + " truncated" * truncations.get(agent, False)
            if agent not in actions:
                if rewards[agent] or end:
                    lines.append(f"## {agent} was not asked\nreward {rewards[agent]:g}{end}")
                continue
            how = infos[agent]["unreadable"] or "valid"
            executed = f"executed {infos[agent]['action']!r}, reward {rewards[agent]:g}{end}"
            lines.append(f"## {agent} writes {actions[agent]!r}\n{how}, {executed}")
    lines += [f"## {agent} reads at the end\n{text}" for agent, text in observations.items()]
    text = "\n".join(lines) + "\n"
    if first:
        text = f"## {text.count(chr(10))} more lines, with the SHA-256 {sha256(text.encode()).hexdigest()}\n"
    return "\n".join([*first, text])
