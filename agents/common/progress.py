"""Progress of a training, line by line."""

from collections.abc import Callable
from time import monotonic
from typing import NamedTuple

from agents.common.clock import duration

SECONDS_BETWEEN_LINES = 10.0


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
