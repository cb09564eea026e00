"""Ctrl-C at the right moment: at once while nothing changes, after the update while weights do."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back Ctrl-C until the block is done, then raise ``KeyboardInterrupt``. A second Ctrl-C isn't held back."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals go to the main thread
        return
    pending = False

    def remember(number: int, frame: FrameType | None) -> None:
        nonlocal pending
        if pending:
            raise KeyboardInterrupt
        pending = True

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pending:
        raise KeyboardInterrupt
