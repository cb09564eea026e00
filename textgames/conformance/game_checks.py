"""The checks of a game itself: its names, its rules and its texts, without an environment around it."""

import copy
import pickle
import random
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from textgames.action_text import ActionNames, Unreadable
from textgames.conformance.play import (
    ConformanceError,
    Result,
    Round,
    initial_state,
    legal_actions,
    playing,
    require,
    rounds_of,
    transition,
)
from textgames.registry import game_of
from textgames.spaces import ObservationText
from textgames.tsmg import TSMG

_IMPURE = "it depends on something that is not in the state, on history or on chance"
_NO_ACTION = "no such action"
_NOT_ACTIONS = ("", " \n", _NO_ACTION, "<action></action>", "<action>", "</action>", "☃\x00\u2028", "y" * 10_000)


def check_names(id: str, settings: Mapping[str, Any]) -> None:
    """Players and actions have distinct names, and an action's name can be read in a response."""
    game = game_of(id, **settings)
    for kind, names in (("players", game.players), ("actions", game.actions)):
        strings = isinstance(names, tuple) and all(isinstance(name, str) and name for name in names)
        require(strings and bool(names), f"{kind} must be a tuple of at least one name, got {names!r}")
        require(len(set(names)) == len(names), f"{kind} has a name twice: {names}")
    try:
        ActionNames(game.actions)
    except ValueError as error:
        raise ConformanceError(str(error)) from error
    require(game.noop in (None, *game.actions), f"noop must be None or one of the actions, got {game.noop!r}")


def check_states(id: str, settings: Mapping[str, Any]) -> None:
    """States are values that rounds don't change, and every player plays at the start, whatever the seed."""
    game = game_of(id, **settings)
    for seed in range(20):
        initial_state(game, np.random.default_rng(seed))
    for _ in rounds_of(game):
        pass  # every answer is checked on the way


def check_purity(id: str, settings: Mapping[str, Any]) -> None:
    """What a game says depends on what it is given: not on what was played before, nor on randomness from elsewhere."""
    game, untouched = game_of(id, **settings), _global_generators()
    played = [(round_, _everything_told(game, round_.state, round_)) for round_ in rounds_of(game)]
    require(
        _global_generators() == untouched,
        "the game draws from a global generator (random or numpy.random); it must draw from the rng that it is given",
    )
    # Equal states must behave equally, so every question is put again to the first of the states that are equal: what
    # their equality leaves out is noticed. The order is another one, so that a dependence on history is noticed too.
    first_of_equals = {round_.state: round_.state for round_, _ in reversed(played)}
    for round_, told in reversed(played):
        _require_same_answers(game, first_of_equals[round_.state], round_, told, "when asked again")
    new = game_of(id, **settings)
    for round_, told in reversed(played):
        copied = pickle.loads(pickle.dumps(round_.state))
        _require_same_answers(new, copied, round_, told, "when asked in a new game")
    for seed in range(10):  # a game with few starts may draw the same one twice by chance
        starts = [each.initial_state(np.random.default_rng(seed)) for each in (game, game, new)]
        require(
            starts[0] == starts[1] == starts[2],
            "initial_state() gave different states for equal generators; it must draw everything random from rng",
        )


def _require_same_answers(
    game: TSMG[Any], state: Any, round_: Round, told: dict[tuple[str, str], Any], when: str
) -> None:
    for (method, player), answer in _everything_told(game, state, round_).items():
        before = told[method, player]
        require(answer == before, f"{method}() of {player} said {before!r}, and {answer!r} {when}: {_IMPURE}")
    result: Result = game.transition(state, dict(round_.joint_action), copy.deepcopy(round_.rng))
    same = "for an equal state, equal actions and an equal generator"
    require(result == round_.result, f"transition() gave another result {when}, {same}: {_IMPURE}")


def _everything_told(game: TSMG[Any], state: Any, round_: Round) -> dict[tuple[str, str], Any]:
    told: dict[tuple[str, str], Any] = {}
    for player in game.players:
        for method in (game.observe, game.legal_actions, game.is_playing, game.succeeded):
            told[method.__name__, player] = method(state, player)
        told["instructions", player] = game.instructions(player)
        told["what_happened", player] = game.what_happened(state, round_.joint_action, round_.result[0], player)
    return told


def _global_generators() -> tuple[Any, ...]:
    name, keys, position, *_ = np.random.get_state()
    return random.getstate(), name, np.asarray(keys).tobytes(), position


def check_actions(id: str, settings: Mapping[str, Any]) -> None:
    """The rules take every legal action of every player and refuse everything else, with a ValueError."""
    game = game_of(id, **settings)
    for state, joint_action, rng, result in rounds_of(game):
        players = playing(game, state)
        for player in players:
            names = legal_actions(game, state, player)
            for name in names:
                transition(game, state, {**joint_action, player: name}, copy.deepcopy(rng))
            for name in (*(name for name in game.actions if name not in names), _NO_ACTION):
                wrong = {**joint_action, player: name}
                _require_refusal(game, state, wrong, rng, f"{name!r} of {player}, which is not legal")
            others = {other: name for other, name in joint_action.items() if other != player}
            _require_refusal(game, state, others, rng, f"a round without an action of {player}")
        ignored = {player: game.actions[0] for player in game.players if player not in players}
        again = transition(game, state, {**joint_action, **ignored}, copy.deepcopy(rng))
        require(again == result, f"the actions of players who are out must be ignored: {', '.join(ignored)}")


def _require_refusal(
    game: TSMG[Any], state: Any, joint_action: dict[str, str], rng: np.random.Generator, what: str
) -> None:
    try:
        game.transition(state, joint_action, copy.deepcopy(rng))
    except ValueError:
        return
    except Exception as error:  # it is refused, but not as callers can expect it
        outcome = f"raised {type(error).__name__} for"
        raise ConformanceError(f"transition() {outcome} {what}: {joint_action}; it must raise ValueError") from error
    raise ConformanceError(f"transition() accepted {what}: {joint_action}; it must raise ValueError")


def check_interpretation(id: str, settings: Mapping[str, Any]) -> None:
    """Every legal action can be written bare or in a tag, and nothing else is ever taken for one."""
    game = game_of(id, **settings)
    for state, *_ in rounds_of(game, 10):
        for player in playing(game, state):
            legal = legal_actions(game, state, player)
            for name in legal:
                tag, padded = f"<action>{name}</action>", f"I go <action> {name} </action>."
                for text in (name, f" {name.upper()}\n", tag, padded):
                    got = game.interpret(text, state, player)
                    require(got == name, f"interpret() must read {text!r} of {player} as {name!r}, got {got!r}")
            wrong = [*_NOT_ACTIONS, *(name for name in game.actions if name not in legal)]
            for name in game.actions:
                longer = f"{name}set"
                while longer in game.actions:
                    longer += "s"
                wrong += [f"<action>{name}</action>" * 2, longer, f"<action>{longer}</action>", f"{name} it is"]
            for text in wrong:
                if text in legal:
                    continue
                got = game.interpret(text, state, player)
                require(got is None, f"interpret() must not read {text[:60]!r} of {player} as an action, got {got!r}")
                why = game.why_invalid(text, state, player)
                told = f"why_invalid() of {text[:60]!r}"
                require(isinstance(why, Unreadable), f"{told} must be an Unreadable, got {why!r}")


def check_texts(id: str, settings: Mapping[str, Any]) -> None:
    """Observations are printable, and the instructions for every player name every action as a word of its own."""
    game, space = game_of(id, **settings), ObservationText()
    for player in game.players:
        told = game.instructions(player)
        require(isinstance(told, str), f"instructions() for {player} must be a string, got {told!r}")
        missing = ", ".join(repr(action) for action in game.actions if not _names(told, action, game.actions))
        require(not missing, f"the instructions for {player} don't name the action {missing} as a word of its own")
    for state, joint_action, _, (after, *_) in rounds_of(game):
        for player in game.players:
            for text in (game.observe(state, player), game.observe(after, player)):
                require(isinstance(text, str), f"observe() of {player} must return a string, got {text!r}")
                require(text in space, f"observe() of {player} returned a text that is not printable: {text[:200]!r}")
            told = game.what_happened(state, joint_action, after, player)
            require(isinstance(told, str), f"what_happened() of {player} must return a string, got {told!r}")


def _names(text: str, action: str, actions: tuple[str, ...]) -> bool:
    """Whether a text names an action: not as a part of another word, nor as a part of a longer action."""
    text = text.casefold()
    for longer in actions:
        if action in longer and action != longer:
            text = text.replace(longer, " ")
    return re.search(rf"(?<![\w-]){re.escape(action)}(?![\w-])", text) is not None
