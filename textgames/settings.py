"""Checks of settings, whose errors say what is accepted; what settings there are, and what docstrings say of them."""

import math
import re
import sys
from collections.abc import Callable, Mapping
from inspect import Parameter, getdoc, signature
from textwrap import dedent
from typing import Any, NamedTuple

import numpy as np

from textgames.names import did_you_mean

MOST = 10_000
"""The most that a whole number is if the game has no reason of its own: what a text can tell, and a machine hold."""


def check_whole(name: str, value: object, least: int, most: int | None = MOST) -> None:
    """Refuse a setting that is not a whole number from ``least`` to ``most``, with a ValueError that names it.

    Only what takes neither memory nor time, such as a seed, has no ``most``: a setting may come from a stranger.
    """
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):  # type: ignore[operator]
        accepted = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be a whole number {accepted}, got {value!r}")


def check_number(name: str, value: object, least: float, most: float, *, open_ends: bool = False) -> None:
    """Refuse a setting that is not a number from ``least`` to ``most``; ``open_ends`` excludes these two.

    An end that is infinite is no bound, and the number has to be finite all the same.
    """
    if isinstance(value, np.number):  # a short one would overflow if it is compared
        value = value.item()
    real = isinstance(value, int | float) and not isinstance(value, bool)
    finite = real and abs(value) <= sys.float_info.max  # type: ignore[arg-type]  # of the largest integers, too
    if not finite or not (least < value < most if open_ends else least <= value <= most):  # type: ignore[operator]
        low, high = ("above", "below") if open_ends else ("of at least", "of at most")
        ends = [f"{word} {end:g}" for word, end in ((low, least), (high, most)) if math.isfinite(end)]
        kind = "number" if len(ends) == 2 else "finite number"
        span = [f"from {least:g} to {most:g}"] if len(ends) == 2 and not open_ends else ends
        raise ValueError(f"{name} must be {' '.join([f'a {kind}', ' and '.join(span)]).rstrip()}, got {value!r}")


def check_switch(name: str, value: object) -> None:
    """Refuse a setting that is neither true nor false; the text ``"false"`` would else count as true."""
    if not isinstance(value, bool | np.bool_) and not (isinstance(value, int) and value in (0, 1)):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def check_one_of(name: str, value: object, known: Mapping[str, object] | tuple[str, ...]) -> None:
    """Refuse a setting that is not one of the known words, with a ValueError that names the nearest."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}{did_you_mean(str(value), known)}")


class Taken(NamedTuple):
    """The settings that a class or function takes, as its signature says."""

    named: Mapping[str, Parameter]  # its parameters that can be given by name, in order
    others: bool  # whether it takes any other names besides, as ``**settings``


def taken_by(make: Callable[..., Any], *, arguments: int = 0) -> Taken:
    """Return what makes a game, a model, a player or a method takes: its parameters after the first ``arguments``."""
    parameters = list(signature(make).parameters.values())
    by_name = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    named = {one.name: one for one in parameters[arguments:] if one.kind in by_name}
    return Taken(named, any(one.kind is Parameter.VAR_KEYWORD for one in parameters))


def explained(make: Callable[..., Any]) -> dict[str, str]:
    """Return ``{setting: what the docstring's section "Args" says of it}``, each on one line."""
    found = re.search(r"^Args:\n((?:    .*\n?|\n)*)", getdoc(make) or "", re.MULTILINE)
    told = re.findall(r"^(\w+): (.*(?:\n +.*)*)", dedent(found[1]) if found else "", re.MULTILINE)
    return {name: " ".join(about.split()) for name, about in told}
