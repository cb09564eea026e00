"""The package ``agents`` by a name that no other distribution has: the same modules, not copies.

``from textbench.agents import load_agent`` and ``import textbench.agents.msgrpo`` are ``agents`` and ``agents.msgrpo``.
An ImportError says what to do if OpenAI's agents SDK, whose import name is ``agents`` too, is in the way.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_loader
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from benchmark.foreign import foreign_agents

if TYPE_CHECKING:
    from agents import *  # noqa: F403


class _Same(MetaPathFinder, Loader):
    """Imports ``textbench.agents.NAME`` as ``agents.NAME``."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if not name.startswith("textbench.agents."):
            return None
        same = find_spec(name.removeprefix("textbench."))
        is_package = same is not None and same.submodule_search_locations is not None
        return same and spec_from_loader(name, self, origin=same.origin, is_package=is_package)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(spec.name.removeprefix("textbench."))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module, which has been executed, its own spec back."""
        module.__spec__ = getattr(module.__spec__, "loader_state", module.__spec__)

    def get_code(self, name: str) -> CodeType | None:
        """Return the code of a module that ``python -m`` runs."""
        same: Any = find_spec(name.removeprefix("textbench."))
        code: CodeType | None = same.loader.get_code(same.name)
        return code


if (_wrong := foreign_agents()) is not None:
    raise ImportError(_wrong, name="agents")
sys.meta_path.insert(0, _Same())
sys.modules[__name__] = import_module("agents")
