"""TOML that people write: files of settings, and single settings on a command line, ``--set NAME=VALUE``."""

import json
import tomllib
from collections.abc import Callable, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from agents.common.reading import read_text

Refusal = Callable[[str], Exception]
"""Makes the error that a reader raises from one sentence, so that each package has its own kind."""


def read_toml(file: Path | Traversable, name: str, refusal: Refusal = ValueError, advice: str = "") -> dict[str, Any]:
    """Read a TOML file, which errors call ``name``; raise what ``refusal`` makes of a sentence."""
    try:
        return tomllib.loads(read_text(file) if isinstance(file, Path) else file.read_text(encoding="utf-8"))
    except OSError as error:
        raise refusal(f"can't read {name}: {error.strerror or error}{advice}") from None
    except RecursionError:
        raise refusal(f"{name} is nested too deeply") from None
    except ValueError as error:  # tomllib's own, and those of bytes and numbers that it lets through
        raise refusal(f"{name} isn't TOML: {error}") from None


def read_setting(text: str, form: str, refusal: Refusal = ValueError, flag: str = "--set") -> tuple[str, Any]:
    """Read the name and the value (:func:`read_value`) of a ``--set NAME=VALUE``, or raise what ``refusal`` makes."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise refusal(f"{flag} takes {form}, got {text!r}")
    return name.strip(), read_value(value.strip())


def read_value(text: str) -> Any:
    """Read a value as TOML, as JSON if TOML has no such value (``null``, ``{"a": 1}``), else as a text."""
    for read in (_toml_value, json.loads):
        try:
            return read(text)
        except (ValueError, TypeError, RecursionError):
            continue
    return text


def _toml_value(text: str) -> Any:
    value = tomllib.loads(f"value = {text}")["value"]
    json.dumps(value)  # raises a TypeError for a date, which no setting takes: it stays the text that it is
    return value


def to_toml(value: Any) -> str:
    """Write a value as TOML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {to_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(to_toml, value)) + "]"
    # JSON's plain values are TOML's as well, but for one control character in strings
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
