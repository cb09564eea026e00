"""Importing modules by name, from the working directory too, and the names of a package when they are first used."""

import ast
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package with the names of the ``.pyi`` beside ``file``.

    They are what ``lazy_loader.attach_stub`` returns, without a dependency: the games install with three.
    """
    homes = {
        alias.name: f"{package}.{node.module or alias.name}"
        for node in ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(homes[name])
        return module if homes[name] == f"{package}.{name}" else getattr(module, name)

    return load, lambda: sorted(homes), sorted(homes)


@contextmanager
def from_here() -> Iterator[None]:
    """Let modules that are imported meanwhile lie in the working directory, before all other places."""
    here = str(Path.cwd())
    added = here not in sys.path and "" not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        yield
    finally:
        if added and here in sys.path:
            sys.path.remove(here)
