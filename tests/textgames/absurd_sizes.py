"""Makes every registered game with an absurd value for each of its whole-number settings, and prints what came of it.

Run as a process, under a limit on memory, by :mod:`tests.textgames.test_absurd_sizes`. One line for each setting:
``{"id", "setting", "value", "said", "seconds"}``, where ``said`` is ``None`` where an episode of such a game began.
"""

import inspect
import itertools
import json
import re
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import gymnasium as gym

import textgames
from textgames.environments.rules import load_game
from textgames.registry import registered_ids, settings_of

ABSURD = (10**9, 10**9 + 1, 10**30)
OF_THE_ENVIRONMENT = ("max_steps", "num_envs")
OF_OPENSPIEL = {
    "hex": "board_size",
    "oshi_zumo": "coins",
    "goofspiel": "num_cards",
    "dots_and_boxes": "num_rows",
    "nim": "max_num_turns",
    "pig": "horizon",
    "kuhn_poker": "players",
    "catch": "rows",
    "othello": "board_size",
}


def whole_settings(id: str) -> list[str]:
    """The settings of a game that are whole numbers, by their annotations and their defaults."""
    kind = load_game(settings_of(id)["game"])
    found = []
    for name, parameter in inspect.signature(kind).parameters.items():
        words = set(re.findall(r"\w+", str(parameter.annotation)))
        number = isinstance(parameter.default, int) and not isinstance(parameter.default, bool)
        if number or parameter.annotation is int or (words & {"int"} and "Sequence" not in words):
            found.append(name)
    return found


def begin(id: str, settings: dict[str, Any], num_envs: int = 0) -> str | None:
    """Begin an episode and play every action that is legal at first; the error where the game can't be made so."""
    try:
        if num_envs:
            gym.make_vec(id, num_envs=num_envs, vectorization_mode="vector_entry_point").reset(seed=0)
            return None
        if textgames.game_of(id, **settings).players[1:]:
            settings = {**settings, "opponents": "random"}
        env = gym.make(id, **settings)
        for action in env.reset(seed=0)[1]["legal_actions"] or ("",):
            env.reset(seed=0)
            env.step(action)
    except (ValueError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def attempts() -> Iterator[tuple[str, str, int, dict[str, Any]]]:
    """Id, setting, value, and the settings that the game is made with."""
    for id in registered_ids():
        if not id.startswith("OpenSpiel"):
            for name, value in itertools.product((*whole_settings(id), *OF_THE_ENVIRONMENT), ABSURD):
                yield id, name, value, {name: value}
    for (game, name), value in itertools.product(OF_OPENSPIEL.items(), ABSURD):
        yield "OpenSpiel-v0", f"{game}.{name}", value, {"name": game, "parameters": {name: value}}


if __name__ == "__main__":
    for id, setting, value, settings in attempts():
        started = perf_counter()
        said = begin(id, {}, value) if setting == "num_envs" else begin(id, settings)
        line = {"id": id, "setting": setting, "value": value, "said": said}
        print(json.dumps({**line, "seconds": round(perf_counter() - started, 2)}), flush=True)
