"""Players around another player, written ``NAME(AGENT)`` where a player is named: ``search(smollm2-lake)``.

A wrapper is a class whose first argument is the player that it asks; its other parameters are its options. It has an
attribute ``inner``, and adds what its own questions cost to the turn that it answers with. One file a wrapper, and a
line here.
"""

import re
from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Any, NamedTuple

from agents.models.provider import Provider, find_model
from textgames.settings import taken_by


class Wrapper(NamedTuple):
    """A kind of player around another.

    Attributes:
        path: ``"module:Class"``; it is only imported to play.
        description: what it does, in one line.
        asks: the option that says how often the player inside is asked for one decision; empty where it is once.
    """

    path: str
    description: str
    asks: str = ""


WRAPPERS = {
    "masked": Wrapper("agents.wrappers.masked:MaskedPolicy", "an agent kept to what a program allows"),
    "search": Wrapper(
        "agents.wrappers.search:SearchPolicy", "the best of an agent's proposals by a value", "proposals"
    ),
}

_WRAPPED = re.compile(rf"(?P<name>{'|'.join(WRAPPERS)})\((?P<inner>.+)\)", re.DOTALL)


def wrapped_in(spec: str) -> tuple[str, str] | None:
    """The wrapper of a spec and the spec of the player inside; ``None`` where no wrapper is named."""
    match = _WRAPPED.fullmatch(spec)
    return (match["name"], match["inner"]) if match else None


def innermost(spec: str) -> str:
    """The spec of the player that is inside of all wrappers."""
    found = wrapped_in(spec)
    return spec if found is None else innermost(found[1])


def model_inside(spec: str) -> tuple[Provider, str] | None:
    """The provider and the name of the language model that a spec ends in; ``None`` where it ends in another player."""
    return find_model(innermost(spec))


def wrapper(name: str) -> Any:
    """A wrapper's class."""
    return resolve_name(WRAPPERS[name].path)


def questions(spec: str, options: Mapping[str, Any]) -> int:
    """How often the innermost player of a spec is asked for one decision, with these options."""
    wrapped = wrapped_in(spec)
    if wrapped is None:
        return 1
    option = WRAPPERS[wrapped[0]].asks
    default = taken_by(wrapper(wrapped[0]), arguments=1).named[option].default if option else 1
    return int(options.get(option, default)) * questions(wrapped[1], options)
