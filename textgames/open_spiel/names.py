"""How OpenSpiel's games read here: their rules in our words, and names of actions that can be written easily.

``games.toml`` has both for the games that have an id. Any other game is played with its own action names and a text
that says what can be said of every game.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any

_CHOICES = re.compile(r"\[(\w)-(\w)\]")


@dataclass(frozen=True)
class Reading:
    """How one game reads."""

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
