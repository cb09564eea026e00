"""Ending at the right moment: Ctrl-C, a batch system's kill and a lost connection keep what has been done."""

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

# signals that ask a process to end and leave it the time to do so; Windows has only the first
POLITE = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextmanager
def kills_interrupt() -> Iterator[None]:
    """End a terminated process (a time limit, a closed terminal) as Ctrl-C does, unless a handler is set."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handled(POLITE, lambda before: before == signal.SIG_DFL, interrupt):
        yield


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back Ctrl-C, and the kills that :func:`kills_interrupt` hears, until the block is done; then raise it.

    A second Ctrl-C isn't held back; a second kill is, since batch systems send several.
    """
    pending = False

    def remember(number: int, frame: FrameType | None) -> None:
        nonlocal pending
        if pending and number == signal.SIGINT:
            raise KeyboardInterrupt
        pending = True

    # those that would end the process at once, or are ignored, stay so: no caller waits for a KeyboardInterrupt
    with _handled((signal.SIGINT, *POLITE), callable, remember):
        yield
    if pending:
        raise KeyboardInterrupt


@contextmanager
def _handled(
    numbers: Iterable[int], takes: Callable[[Any], bool], handler: Callable[[int, FrameType | None], None]
) -> Iterator[None]:
    """Handle those signals whose handlers may be replaced; none outside of the main thread, such as a notebook's."""
    in_main = threading.current_thread() is threading.main_thread()
    before = {number: old for number in numbers if in_main and takes(old := signal.getsignal(number))}
    for number in before:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
