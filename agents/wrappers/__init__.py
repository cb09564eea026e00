"""Players around other players, written ``NAME(AGENT)`` where a player is named: ``search(smollm2-lake)``.

A wrapper is a class (:class:`agents.wrappers.around.Around`) whose first arguments are the players that it asks; its
other parameters are its options. What its questions cost is part of the turn that it answers with. One file a
wrapper, and a line here.
"""

from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter
from pkgutil import resolve_name
from typing import Any, NamedTuple

from agents.models.provider import Provider, find_model
from textgames.settings import taken_by


class Wrapper(NamedTuple):
    """A kind of player around others.

    Attributes:
        path: ``"module:Class"``; it is only imported to play.
        description: what it does, in one line.
        players: how many players are inside.
        more: how many there may be besides.
        tells_more: whether the player whose answer it gives was told more than what a player alone is asked with.
    """

    path: str
    description: str
    players: int = 1
    more: int = 0
    tells_more: bool = False


WRAPPERS = {
    "search": Wrapper("agents.wrappers.search:SearchPolicy", "the best of an agent's proposals by a value"),
    "advised": Wrapper(
        "agents.wrappers.advised:AdvisedPolicy", "an agent that reads another's advice", 2, tells_more=True
    ),
    "imagine": Wrapper(
        "agents.wrappers.imagine:ImaginePolicy",
        "an agent that sees what its answer leads to",
        players=2,
        tells_more=True,
    ),
    "masked": Wrapper("agents.wrappers.masked:MaskedPolicy", "an agent kept to what a program allows"),
    "router": Wrapper("agents.wrappers.router:RouterPolicy", "one of two agents for each decision", 2, 1),
}


class Wrapped(NamedTuple):
    """A spec of the form ``NAME(AGENT, ...)``: the wrapper's name, and the specs of the players inside."""

    name: str
    inside: tuple[str, ...]


def wrapped_in(spec: str) -> Wrapped | None:
    """The wrapper that a spec names; ``None`` where it names none."""
    name, opened, rest = spec.partition("(")
    if name not in WRAPPERS or not opened or not rest.endswith(")"):
        return None
    return Wrapped(name, tuple(_split(rest[:-1])))


def check_form(spec: str) -> None:
    """Refuse a wrapper that takes another number of players.

    Raises:
        ValueError: says the form that is accepted.
    """
    if (wrapped := wrapped_in(spec)) is None:
        return
    about = WRAPPERS[wrapped.name]
    if not about.players <= len(wrapped.inside) <= about.players + about.more or not all(wrapped.inside):
        raise ValueError(f"{spec!r} is not of the form {form_of(wrapped.name)}")
    for inner in wrapped.inside:
        check_form(inner)


def form_of(name: str) -> str:
    """How a wrapper is written: ``search(AGENT)``."""
    about = WRAPPERS[name]
    return f"{name}({', '.join(['AGENT'] * about.players)}{'[, AGENT]' * about.more})"


def _split(listed: str) -> Iterator[str]:
    """The parts between commas that stand in no brackets."""
    depth, start = 0, 0
    for at, letter in enumerate(listed):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            yield listed[start:at].strip()
            start = at + 1
    yield listed[start:].strip()


def innermost(spec: str) -> tuple[str, ...]:
    """The specs of the players that are inside of all wrappers; the spec itself where it is no wrapper."""
    wrapped = wrapped_in(spec)
    return (spec,) if wrapped is None else tuple(one for inner in wrapped.inside for one in innermost(inner))


def with_innermost(spec: str, of: Callable[[str], str]) -> str:
    """The spec with another in the place of each of the innermost players."""
    wrapped = wrapped_in(spec)
    if wrapped is None:
        return of(spec)
    return f"{wrapped.name}({', '.join(with_innermost(inner, of) for inner in wrapped.inside)})"


def models_inside(spec: str) -> list[tuple[Provider, str]]:
    """The provider and the name of every language model that a spec ends in; nothing for other players."""
    return [found for one in innermost(spec) if (found := find_model(one)) is not None]


def told_more(spec: str) -> bool:
    """Whether an answer of a spec's player may follow from more than what a player alone is asked with."""
    wrapped = wrapped_in(spec)
    return wrapped is not None and (WRAPPERS[wrapped.name].tells_more or any(map(told_more, wrapped.inside)))


def wrapper(name: str) -> Any:
    """A wrapper's class."""
    return resolve_name(WRAPPERS[name].path)


def own_options(name: str) -> tuple[str, ...]:
    """The options that a wrapper has besides those of the players inside."""
    return tuple(_own_parameters(name))


def _own_parameters(name: str) -> Mapping[str, Parameter]:
    about = WRAPPERS[name]
    return taken_by(wrapper(name), arguments=about.players + about.more).named


def questions(spec: str, options: Mapping[str, Any]) -> dict[str, int]:
    """How often each of the innermost players is asked for one decision at most: ``{spec: questions}``."""
    wrapped = wrapped_in(spec)
    if wrapped is None:
        return {spec: 1}
    found, own = dict[str, int](), _own_parameters(wrapped.name)
    told = {name: options.get(name, parameter.default) for name, parameter in own.items()}
    asks = wrapper(wrapped.name).asks(len(wrapped.inside), told)
    for inner, times in zip(wrapped.inside, asks, strict=True):
        for one, asked in questions(inner, options).items():
            found[one] = found.get(one, 0) + times * asked
    return found
