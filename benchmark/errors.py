"""Errors that a person can do something about: one sentence each, never a traceback.

Any function of this package may raise a :class:`UsageError`; docstrings name it only at public functions.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote


class BenchmarkError(Exception):
    """Base class: ``str(error)`` is one sentence for a person; ``exit_code`` is what the command line returns."""

    exit_code = 1


class UsageError(BenchmarkError):
    """The request can't be done as it is: unknown names, bad values, a missing key, files that aren't ours."""

    exit_code = 2


class StorageError(BenchmarkError):
    """The disk refused (full, unwritable, locked by another run). Finished episodes are kept."""

    exit_code = 2


@contextmanager
def storing(file: str | Path) -> Iterator[None]:
    """Write a file in this block; a disk that refuses is a StorageError.

    A BrokenPipeError passes: the reader of a pipe has gone (``textbench export ... | head``).
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StorageError(f"can't write {file}: {without_folder(Path(file)) or error.strerror}") from None


def without_folder(path: Path) -> str | None:
    """Return that a file's folder doesn't exist, and what makes it; ``None`` if it is there."""
    folder = path.parent
    return None if folder.is_dir() else f"there is no folder {folder}; mkdir -p {quote(str(folder))}"


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """Return the error for a name that doesn't exist, with the nearest names, or all that there are."""
    from textgames.names import nearest_or_all  # here, since the package brings gymnasium, which --help can do without

    return UsageError(f"no {kind} named {name!r}; {nearest_or_all(name, sorted(known))}")
