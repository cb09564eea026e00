"""Loading games of the library, with errors for people, and how they read here.

``games.toml`` has the rules in our words, and names of actions that can be written easily, for the games that have an
id. Any other game is played with its own action names and a text that says what can be said of every game.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any

from textgames.extras import install_command
from textgames.names import did_you_mean
from textgames.settings import MOST, check_whole

_CHOICES = re.compile(r"\[(\w)-(\w)\]")

Key = tuple[str, tuple[tuple[str, Any], ...]]
"""A game of the library: its name, and its parameters in order of their names."""


def library() -> Any:
    """Return the module ``pyspiel``, or raise ModuleNotFoundError with the command that installs it."""
    try:
        import pyspiel
    except ModuleNotFoundError:
        sentence = f"OpenSpiel's games need the package open_spiel: {install_command('openspiel')}"
        raise ModuleNotFoundError(sentence, name="pyspiel") from None
    return pyspiel


@cache
def load(name: str, parameters: tuple[tuple[str, Any], ...]) -> Any:
    """Return the library's game; a ValueError if there is none with these parameters, or it can't be played here."""
    pyspiel = library()
    known = {kind.short_name: kind for kind in pyspiel.registered_games()}
    if name not in known:
        raise ValueError(
            f"OpenSpiel has no game {name!r}{did_you_mean(name, known)}; it has {', '.join(sorted(known))}"
        )
    accepted = sorted(known[name].parameter_specification)
    for parameter, value in parameters:
        if isinstance(value, int) and not isinstance(value, bool):  # the library itself takes any, and all the memory
            check_whole(parameter, value, -MOST)
        if parameter not in accepted:
            near = did_you_mean(parameter, accepted)
            raise ValueError(
                f"OpenSpiel's {name} has no parameter {parameter!r}{near}; it has {', '.join(accepted) or 'none'}"
            )
    try:
        game = pyspiel.load_game(name, dict(parameters))
    except (pyspiel.SpielError, TypeError) as error:
        raise ValueError(f"OpenSpiel can't load {name} with {dict(parameters)}: {error}") from None
    kind = game.get_type()
    if kind.chance_mode == pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC:
        raise ValueError(f"{name} draws its chances inside the library, from no seed of ours, so it can't be repeated")
    if kind.dynamics == pyspiel.GameType.Dynamics.MEAN_FIELD:
        raise ValueError(f"{name} is a mean-field game: it has no players that could be asked one by one")
    if not (kind.provides_observation_string or kind.provides_information_state_string):
        raise ValueError(f"{name} has no text that a player could read")
    return game


@dataclass(frozen=True)
class Reading:
    """One game's readings."""

    rules: str = ""  # the rules in our words; ``""`` if none are written
    seats: tuple[str, ...] = ()  # what each player plays, in the order of players: ``("x", "o")``
    # ``(regular expression, replacement)`` for the library's action names, in lower case
    renamed: tuple[tuple[str, str], ...] = ()
    actions: tuple[str, ...] = ()  # every action's name, after renaming; empty if they aren't listed
    lists_chances: bool = True  # whether the outcomes of every move are few enough to list them

    def rename(self, name: str) -> str:
        for pattern, replacement in self.renamed:
            name = re.sub(pattern, replacement, name)
        return name


@cache
def reading_of(name: str, parameters: tuple[tuple[str, Any], ...]) -> Reading:
    """Return how a game reads; without its rules where its parameters are not those that the rules were written for."""
    for row in _readings().values():
        if row["game"] == name:
            written_for = tuple(sorted(row.get("parameters", {}).items())) == parameters
            return Reading(
                rules=row["rules"].strip() if written_for else "",
                seats=tuple(row.get("seats", ())),
                renamed=tuple((pattern, replacement) for pattern, replacement in row.get("renamed", ())),
                actions=expand(row["actions"]) if written_for else (),
                lists_chances=row.get("lists_chances", True),
            )
    return Reading()


@cache
def _readings() -> Mapping[str, Any]:
    return tomllib.loads(files("textgames").joinpath("open_spiel/games.toml").read_text(encoding="utf-8"))


def expand(patterns: Sequence[str]) -> tuple[str, ...]:
    """Return every name of a list in which ``[a-c]`` stands for each of a, b and c."""
    names = []
    for pattern in patterns:
        pieces = _CHOICES.split(pattern)  # text, first, last, text, first, last, ..., text
        choices = [
            map(chr, range(ord(first), ord(last) + 1)) for first, last in zip(pieces[1::3], pieces[2::3], strict=True)
        ]
        for chosen in product(*choices):
            filled = [text + choice for text, choice in zip(pieces[::3], (*chosen, ""), strict=True)]
            names.append("".join(filled))
    return tuple(names)
