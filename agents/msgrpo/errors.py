"""Errors of a training run, by what a person can do about them."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from textgames.extras import install_command


class ConfigError(ValueError):
    """A setting that can't be used. The message names the setting, its value and what is accepted."""


class UnusableModelError(ValueError):
    """A model or tokenizer that can't be trained. The message says why, and what would work."""


class RolloutError(RuntimeError):
    """The engine failed in the middle of an iteration."""


class DivergenceError(RuntimeError):
    """A loss or gradient was NaN or exploded. The weights have not been touched by it."""


class TrainingDivergedError(RuntimeError):
    """Training was stopped by a divergence; ``rate`` names the setting that was too high."""

    def __init__(self, message: str, rate: str = "learning_rate") -> None:
        super().__init__(message)
        self.rate = rate


class DeadRunError(RuntimeError):
    """Training was stopped as nothing is learnt any more; ``spoiled``: weights from before the sign are to be kept."""

    def __init__(self, message: str, *, spoiled: bool) -> None:
        super().__init__(message)
        self.spoiled = spoiled


class CheckpointError(OSError):
    """A checkpoint can't be written. The message has the folder and the reason; nothing of it is left behind."""


def check_installed(needing: str, package: str) -> None:
    """Raise a ModuleNotFoundError if a package of the extra ``train`` is missing; ``needing``: "lora_rank needs"."""
    if find_spec(package) is None:
        told = f"{needing} {package}, which is not installed: {install_command('train')}"
        raise ModuleNotFoundError(told, name=package)


@contextmanager
def refused(what: str = "", *kinds: type[Exception]) -> Iterator[None]:
    """Turn errors of these kinds, ValueErrors by default, into a :class:`ConfigError`, about ``what`` if it is said."""
    caught = kinds or (ValueError,)
    try:
        yield
    except caught as error:
        raise ConfigError(f"{what}: {error}" if what else str(error)) from error
