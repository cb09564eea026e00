"""The benchmark: runs agents on fixed scenarios, keeps every episode, and compares scores that can be checked.

From Python: :func:`evaluate` plays, :func:`read_results` opens what was played, and both return :class:`Results`. Names
are imported when they are first used, so ``import benchmark`` loads nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmark.errors import BenchmarkError, StorageError, UsageError
    from benchmark.evaluation import evaluate
    from benchmark.results import Comparison, Leaderboard, Results, read_results

_MODULE_OF = {
    "BenchmarkError": "benchmark.errors",
    "Comparison": "benchmark.results",
    "Leaderboard": "benchmark.results",
    "Results": "benchmark.results",
    "StorageError": "benchmark.errors",
    "UsageError": "benchmark.errors",
    "evaluate": "benchmark.evaluation",
    "read_results": "benchmark.results",
}

__all__ = [
    "BenchmarkError",
    "Comparison",
    "Leaderboard",
    "Results",
    "StorageError",
    "UsageError",
    "evaluate",
    "read_results",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from benchmark.foreign import foreign_agents

    if (wrong := foreign_agents()) is not None:
        raise ImportError(wrong, name="agents")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
