"""Where other tools look for textbench under its own name; the packages are textgames, agents and benchmark.

verifiers imports the module that is called as a taskset is, and takes what its ``__all__`` names. The taskset itself is
in a distribution of its own, ``textbench-verifiers``, and is imported when it is asked for.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

__all__ = ["TextbenchEnv", "TextbenchTaskset"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if find_spec("textbench_verifiers") is None:
        raise ModuleNotFoundError(
            "the taskset textbench isn't installed; in a clone of textbench: "
            "pip install -e textbench/integrations/verifiers"
        )
    return getattr(import_module("textbench_verifiers"), name)
