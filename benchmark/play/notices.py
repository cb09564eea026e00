"""What people should know of the servers that are asked: said once while a run plays, and kept with its session."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from agents.models.served.model import NOTICES


@contextmanager
def noticed(say: Callable[[str], None]) -> Iterator[list[str]]:
    """A context in which every notice about a server is said once; gives the list in which they collect."""
    said: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            message = record.getMessage()
            if message not in said:
                said.append(message)
                say(message)

    listener = Listener(logging.WARNING)
    NOTICES.addHandler(listener)
    try:
        yield said
    finally:
        NOTICES.removeHandler(listener)
