"""What every registered game must do, as checks that run on yours too.

::

    import textgames.conformance
    textgames.conformance.check("MyGame-v0")          # raises ConformanceError with what is wrong
    textgames.conformance.check("MyGame-v0", size=5)  # with other settings

Each check takes an id and settings; :data:`CHECKS` has them by name, for a parametrised test.
"""

import traceback
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from textgames.conformance import environment_checks, game_checks
from textgames.conformance.play import ConformanceError, transcript
from textgames.names import did_you_mean
from textgames.registry import settings_of
from textgames.tsmg import TSMG

__all__ = ["CHECKS", "ConformanceError", "check", "run_check", "transcript"]

CHECKS: Mapping[str, Callable[[str, Mapping[str, Any]], None]] = MappingProxyType(
    {
        name.removeprefix("check_"): run
        for module in (game_checks, environment_checks)
        for name, run in vars(module).items()
        if name.startswith("check_")
    }
)
"""The functions ``check_NAME`` of both modules by name, in the order in which :func:`check` runs them."""


def check(id: str, /, **settings: Any) -> None:
    """Run every check on an id; ``settings`` override those that it was registered with.

    A ConformanceError tells which check failed first and what it saw; a ValueError is raised if there is no such id.
    """
    for name in CHECKS:
        run_check(name, id, **settings)


def run_check(name: str, id: str, /, **settings: Any) -> None:
    """Run one check by name; errors are those of :func:`check`, and a ValueError if there is no such check."""
    if name not in CHECKS:
        raise ValueError(f"no check {name!r}; there are {', '.join(CHECKS)}{did_you_mean(name, CHECKS)}")
    settings_of(id)
    try:
        CHECKS[name](id, settings)
    except ConformanceError as error:
        raise ConformanceError(f"{id}: {name}: {error}") from error
    except Exception as error:  # whatever a game raises if it must not is a failed check
        raise ConformanceError(f"{id}: {name}: {_raised_by(error)}{type(error).__name__}: {error}") from error


def _raised_by(error: Exception) -> str:
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if isinstance(frame.f_locals.get("self"), TSMG):
            return f"{frame.f_code.co_name}() raised "
    return ""
