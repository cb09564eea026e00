"""Published methods as settings, by name: the lines of ``presets.toml``."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from agents.common.toml import read_toml
from agents.msgrpo.errors import ConfigError
from textgames.names import nearest_or_all

_FILE = Path(__file__).with_name("presets.toml")
_COMMON = "common"


@cache
def _tables() -> dict[str, dict[str, Any]]:
    return read_toml(_FILE, "the presets")


def preset_names() -> tuple[str, ...]:
    """The names of all presets."""
    return tuple(name for name in _tables() if name != _COMMON)


def preset(name: str) -> dict[str, Any]:
    """A preset's settings as a file would have them, ``{setting: value}`` with tables for the methods' own settings.

    Raises:
        ConfigError: there is none of that name.
    """
    if name not in preset_names():
        raise ConfigError(f"preset = {name!r} is not one; {nearest_or_all(str(name), preset_names())}")
    return layered(_tables()[_COMMON], _tables()[name])


def layered(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Settings over others: what both have is as in ``above``, and tables are laid over each other in the same way."""
    result = dict(below)
    for key, value in above.items():
        under = result.get(key)
        if isinstance(value, Mapping) and isinstance(under, Mapping):
            result[key] = layered(under, value)
        else:
            result[key] = value
    return result
