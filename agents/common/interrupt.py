"""Ending at the right moment: Ctrl-C, a batch system's kill and a lost connection keep what has been done."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

POLITE = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that ask a process to end and leave it the time to do so; Windows has only the first."""


@contextmanager
def kills_interrupt() -> Iterator[None]:
    """End a terminated process (a batch system's time limit, a closed terminal) as Ctrl-C does, unless a handler is
    set."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield  # a notebook's worker: signals go to the main thread
        return
    taken = [number for number in POLITE if signal.getsignal(number) == signal.SIG_DFL]
    for number in taken:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back Ctrl-C, and the kills that :func:`kills_interrupt` hears, until the block is done.

    Then ``KeyboardInterrupt`` is raised. A second Ctrl-C isn't held back; a second kill is, since batch systems send
    several.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending = False

    def remember(number: int, frame: FrameType | None) -> None:
        nonlocal pending
        if pending and number == signal.SIGINT:
            raise KeyboardInterrupt
        pending = True

    # those that would end the process at once, or are ignored, stay so: no caller waits for a KeyboardInterrupt
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *POLITE)}
    held = {number: handler for number, handler in before.items() if callable(handler)}
    for number in held:
        signal.signal(number, remember)
    try:
        yield
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
    if pending:
        raise KeyboardInterrupt
