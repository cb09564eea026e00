"""Progress of a training, line by line, and times in words."""

from collections.abc import Callable
from time import monotonic
from typing import NamedTuple

SECONDS_BETWEEN_LINES = 10.0


def duration(seconds: float) -> str:
    """Write a time as ``"4.2 s"``, ``"48 s"``, ``"3 min 05 s"`` or ``"2 h 10 min"``."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


class Progress(NamedTuple):
    """How far a training has come; ``loss`` is the latest step's, in nats per response token."""

    step: int
    steps: int
    loss: float
    seconds: float


class ProgressLines:
    """Reports a training's progress, a line every few seconds."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._last, self._losses = say, monotonic(), list[float]()

    def __call__(self, progress: Progress) -> None:
        self._losses.append(progress.loss)
        if monotonic() - self._last < SECONDS_BETWEEN_LINES and progress.step < progress.steps:
            return
        mean = sum(self._losses) / len(self._losses)
        self._losses, self._last = [], monotonic()
        left = duration(progress.seconds / progress.step * (progress.steps - progress.step))
        self._say(f"step {progress.step:,}/{progress.steps:,}: loss {mean:.4f} a token, about {left} left")
