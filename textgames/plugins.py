"""Find what installed packages add: agents, commands, credit methods and so on, each in a group of entry points.

Groups: ``textbench.agents``, ``.baselines``, ``.wrappers``, ``.providers``, ``.commands``, ``.improvers``,
``.seasons``, ``.tables``, and the plug-in points of the trainer: ``.credit``, ``.draw``, ``.surrogate``, ``.filter``,
``.normalizer``, ``.tasks`` and ``.presets``. A package adds a name in its ``pyproject.toml``::

    [project.entry-points."textbench.agents"]
    mine = "my_package:MyAgent"
"""

import sys
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

RESEARCH = "textbench-research"
"""The distribution with the studies, improvers and methods of neighbouring papers."""


def installed(group: str) -> dict[str, EntryPoint]:
    """Return ``{name: entry point}`` of a group, from all packages that can be imported now."""
    return dict(_installed(group, tuple(sys.path)))


@lru_cache(maxsize=32)
def _installed(group: str, path: tuple[str, ...]) -> dict[str, EntryPoint]:
    """Read the metadata of every installed package, 20 ms in a usual environment: once for every search path."""
    return {entry.name: entry for entry in entry_points(group=group)}


def loaded(group: str, broken: Callable[[EntryPoint, str], Any] | None = None) -> dict[str, Any]:
    """Import and return ``{name: object}`` of a group.

    ``broken(entry point, what is wrong)`` takes the place of an object that can't be imported; without it an
    ImportError names the object and its package.
    """
    found = {}
    for name, entry in installed(group).items():
        try:
            found[name] = entry.load()
        except Exception as error:  # the import of a package can fail in any way
            if broken is None:
                package = entry.dist.name if entry.dist else "an installed package"
                told = f"{package} adds {name!r} ({entry.value}), which can't be imported: {error}"
                raise ImportError(told) from error
            found[name] = broken(entry, f"can't be imported: {error}")
    return found


def research_advice(what: str = "more") -> str:
    """Return a clause that says how to install ``textbench-research``, with which ``what`` comes; empty if it is."""
    if any(
        entry.dist is not None and entry.dist.name == RESEARCH for entry in installed("textbench.commands").values()
    ):
        return ""
    root = Path(__file__).parents[1]
    clone = (root / "research/pyproject.toml").is_file()
    how = f"pip install -e research (in {root})" if clone else f"pip install {RESEARCH}, or -e research in a clone"
    return f"; {what} come with {RESEARCH}: {how}"
