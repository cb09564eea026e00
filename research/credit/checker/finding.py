"""A check's settings and its outcome."""

from typing import Literal, NamedTuple

from research.credit.checker.rows import Dump


class Finding(NamedTuple):
    """The outcome of one check."""

    check: str
    result: Literal["passed", "failed", "not checked"]
    said: str = ""


class Stated(NamedTuple):
    """The statements about the trainer beside its rows."""

    method: str = ""
    normalizer: str = ""
    eos: tuple[int, ...] = ()
    most_kl: float = 0.01  # nats a token


class MissingError(Exception):
    """Says what rows lack for a check."""


def needs(dump: Dump, *names: str) -> None:
    """Raise a MissingError if the responses lack a field."""
    if lacking := [name for name in names if not dump.has(name)]:
        raise MissingError(f"responses have no {' and no '.join(lacking)}")
