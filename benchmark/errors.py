"""What goes wrong in a way that a person can do something about: one sentence each, never a traceback."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


class BenchmarkError(Exception):
    """Base class: ``str(error)`` is one sentence for a person; ``exit_code`` is what the command line returns."""

    exit_code = 1


class UsageError(BenchmarkError):
    """What was asked for can't be done as asked: unknown names, bad values, a missing key, files that aren't ours."""

    exit_code = 2


class StorageError(BenchmarkError):
    """The disk said no (full, unwritable, locked by another run). Finished episodes are kept."""

    exit_code = 2


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """The error for a name that doesn't exist: quotes it and says what it may have meant, or what there is."""
    from textgames.names import nearest_or_all  # here, since the package brings gymnasium, which --help can do without

    return UsageError(f"no {kind} named {name!r}; {nearest_or_all(name, sorted(known))}")


def problem_of(error: "ValidationError", place: str = "") -> str:
    """The first problem that pydantic found as half a sentence: its place, what is accepted there, what was found.

    Args:
        error: what pydantic raised.
        place: what to call the value that was checked; places inside it follow after a point.
    """
    first = error.errors(include_url=False)[0]
    parts = [*([place] if place else []), *map(str, first["loc"])]
    where = ".".join(part if part.isprintable() and 0 < len(part) < 100 else shown(part) for part in parts) or "it"
    if first["type"] == "json_invalid":
        return first["msg"]
    if first["type"] == "missing":
        return f"{where} is missing"
    if first["type"] == "extra_forbidden":
        return f"{where} is unknown here"
    # "Input should be a valid string", "List should have at least 2 items after validation, not 1"
    accepted = first["msg"].partition(" should ")[2].partition(" after validation")[0]
    wrong = f"must {accepted}" if accepted else f"isn't accepted ({first['msg']})"
    return f"{where} {wrong}, got {shown(first['input'])}"


def shown(value: object) -> str:
    """A value for a message, shortened, with invisible characters as escapes."""
    try:
        text = repr(value)
    except ValueError:  # Python doesn't print whole numbers of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= 100 else f"{text[:80]}... ({len(text):,} characters)"
