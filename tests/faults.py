"""Failures of the operating system, one at a time: every call that writes is counted, and the n-th fails or is killed.

As in SQLite's tests. Calls are Python's: ``os.open`` for writing, ``os.write``, ``os.fsync``, ``os.replace`` and the
like, and what a file that ``open`` has opened writes. What a library writes by itself (safetensors) isn't counted.
"""

import builtins
import errno
import io
import itertools
import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CALLS = ("write", "fsync", "replace", "rename", "mkdir", "unlink", "remove", "rmdir", "symlink", "ftruncate")


class Faults:
    """Counts calls below a folder; ``at`` is the one that ``happen`` is done at, before it, or the first of many.

    Attributes:
        calls: the names of the calls so far.
    """

    def __init__(self, folder: Path, at: int | None, happen: Callable[[], None], lasting: bool) -> None:
        self._root, self._at, self._happen, self._lasting = os.path.realpath(folder), at, happen, lasting
        self.calls: list[str] = []

    def concerns(self, where: Any, folder: int | None = None) -> bool:
        """Whether a path, in a folder that is open or the working one, or an open file is below the folder."""
        base = os.getcwd() if folder is None else os.readlink(f"/proc/self/fd/{folder}")
        path = (
            os.readlink(f"/proc/self/fd/{where}") if isinstance(where, int) else os.path.join(base, os.fsdecode(where))
        )
        return os.path.join(os.path.realpath(os.path.dirname(path)), "").startswith(os.path.join(self._root, ""))

    def call(self, name: str, where: Any, folder: int | None = None) -> None:
        """Count a call, if it concerns the folder."""
        if not self.concerns(where, folder):
            return
        self.calls.append(name)
        if self._at is not None and (len(self.calls) == self._at or (self._lasting and len(self.calls) > self._at)):
            self._happen()


class _File(io.FileIO):
    faults: Faults

    def write(self, data: Any) -> int:
        self.faults.call("file.write", self.fileno())
        return super().write(data)


@contextmanager
def faults(
    folder: Path, at: int | None = None, happen: Callable[[], None] = lambda: None, *, lasting: bool = False
) -> Iterator[Faults]:
    """Count all calls that write below a folder in this block, and let something happen at one of them."""
    found = Faults(folder, at, happen, lasting)
    real_os = {name: getattr(os, name) for name in (*CALLS, "open")}
    real_open = io.open

    def wrapped(name: str) -> Callable[..., Any]:
        def call(where: Any, *rest: Any, **options: Any) -> Any:
            found.call(name, rest[0] if name == "symlink" else where, options.get("dir_fd"))
            return real_os[name](where, *rest, **options)

        return call

    def os_open(where: Any, flags: int, *rest: Any, **options: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            found.call("open", where, options.get("dir_fd"))
        return real_os["open"](where, flags, *rest, **options)  # type: ignore[no-any-return]

    def opened(file: Any, mode: str = "r", buffering: int = -1, *rest: Any, **options: Any) -> Any:
        if not set(mode) & set("wax+") or not found.concerns(file):
            return real_open(file, mode, buffering, *rest, **options)
        if not isinstance(file, int):
            found.call("open", file)
        kind = type("_Counted", (_File,), {"faults": found})
        raw = kind(file, mode.replace("b", "").replace("t", ""), options.get("closefd", True))
        stream = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        if "b" in mode:
            return stream
        text = io.TextIOWrapper(stream, rest[0] if rest else options.get("encoding"), newline=options.get("newline"))
        text.mode = mode  # type: ignore[misc]
        return text

    for name in CALLS:
        setattr(os, name, wrapped(name))
    os.open = os_open
    io.open = builtins.open = opened
    try:
        yield found
    finally:
        for name, real in real_os.items():
            setattr(os, name, real)
        io.open = builtins.open = real_open


def failing(number: int) -> Callable[[], None]:
    """Raise this error of the operating system."""

    def happen() -> None:
        raise OSError(number, os.strerror(number))

    return happen


def full() -> None:
    failing(errno.ENOSPC)()


def broken() -> None:
    failing(errno.EIO)()


def killed() -> None:
    """End the process as ``kill -9`` does."""
    os.kill(os.getpid(), signal.SIGKILL)


def every_kill(folder: Path, work: Callable[[], object]) -> Iterator[int]:
    """Do the work once for every call that writes below ``folder``, in a process of its own that is killed there."""
    for number in itertools.count(1):
        child = os.fork()
        if child == 0:
            try:
                with faults(folder, number, killed):
                    work()
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            return
        yield number


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Let no file grow larger, as on a full disk: the write that goes over it is cut short, then fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
