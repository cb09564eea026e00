"""The benchmark: runs agents on fixed scenarios, keeps every episode, and compares scores that can be checked.

From Python: :func:`evaluate` plays, :func:`read_results` opens what was played, and both return :class:`Results`. Names
are imported when they are first used, so ``import benchmark`` loads nothing.
"""

from typing import Any

import lazy_loader

_named, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    from benchmark.foreign import foreign_agents

    if name in __all__ and (wrong := foreign_agents()) is not None:
        raise ImportError(wrong, name="agents")
    return _named(name)
