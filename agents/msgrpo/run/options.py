"""How a setting is declared, checked and written: the machinery under :mod:`agents.msgrpo.run.config`."""

import tomllib
from dataclasses import field
from typing import Any, TypeVar

from textgames.names import did_you_mean

T = TypeVar("T")


class ConfigError(ValueError):
    """A setting that can't be used. The message names the field, the value and what is accepted."""


def option(
    default: T,
    section: str,
    doc: str,
    *,
    choices: tuple[str, ...] = (),
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
) -> T:
    """A field with its documentation and accepted range: ``low <= value <= high``, ``value > above``."""
    about = {"section": section, "doc": doc, "choices": choices, "low": low, "high": high, "above": above}
    return field(default=default, metadata=about)


def accepted(about: Any) -> str:
    """What a field accepts, in words."""
    limits, kind = about.metadata, type(about.default)
    if limits["choices"]:
        return ", ".join(limits["choices"])
    if kind is bool:
        return "true, false"
    if kind is tuple:
        return "a list of strings"
    if kind is str:
        return "a string"
    bounds = [f"> {limits['above']:g}"] if limits["above"] is not None else []
    bounds += [f">= {limits['low']:g}"] if limits["low"] is not None else []
    bounds += [f"<= {limits['high']:g}"] if limits["high"] is not None else []
    return " ".join(["an integer" if kind is int else "a number", " and ".join(bounds)]).strip()


def checked(name: str, value: Any, about: Any) -> Any:
    """``value`` in the field's type (an integer where a float is wanted, a list where a tuple is), or ConfigError."""
    limits, kind = about.metadata, type(about.default)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if kind is tuple and isinstance(value, (list, tuple)):
        value = tuple(value)
    if kind is tuple and isinstance(value, str):
        value = (value,)
    right_type = type(value) is kind and (kind is not tuple or all(isinstance(item, str) for item in value))
    if (
        not right_type
        or (limits["choices"] and value not in limits["choices"])
        or (limits["low"] is not None and not value >= limits["low"])
        or (limits["high"] is not None and not value <= limits["high"])
        or (limits["above"] is not None and not value > limits["above"])
        or (kind is float and value in (float("inf"), float("-inf")))
        or (kind is float and value != value)
    ):
        hint = did_you_mean(value, limits["choices"]) if isinstance(value, str) else ""
        raise ConfigError(f"{name} = {value!r} can't be used; accepted: {accepted(about)}{hint}")
    return value


def parse_value(text: str) -> Any:
    """The value of a ``key=value`` override: TOML where it is that, else the string itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text  # a string without its quotes


def toml_value(value: Any) -> str:
    """A setting as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04X}" for c in escaped) + '"'
    if isinstance(value, tuple):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    return repr(value)
