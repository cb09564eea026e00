"""Values that belong to an event loop, such as connections, which can't be used in another one."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerLoop(Generic[T]):
    """One value for every event loop that asks for it; those of closed loops are forgotten."""

    def __init__(self) -> None:
        self._kept: dict[asyncio.AbstractEventLoop, T] = {}

    def get(self, make: Callable[[], T]) -> T:
        """Return the running loop's value, made when it is first asked for."""
        loop = asyncio.get_running_loop()
        if loop not in self._kept:
            self._kept = {known: kept for known, kept in self._kept.items() if not known.is_closed()}
            self._kept[loop] = make()
        return self._kept[loop]

    def pop(self) -> T | None:
        """Forget the running loop's value, and return it; ``None`` if there is none."""
        return self._kept.pop(asyncio.get_running_loop(), None)
