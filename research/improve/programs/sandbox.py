"""A place to run a program of unknown origin: it can compute, and reach nothing else.

``source, calls -> answers``. The program runs in a process of its own, ``worker.py``, which is kept for many calls.
What holds it, on Linux on x86-64 and 64-bit ARM, without any privilege:

* a **seccomp** filter, put on for good before the program is even compiled. It lets 17 of the kernel's calls through:
  reading and writing what is open already, memory, the clock, random bytes, the process's alarm, and its end. Opening a
  file, a socket, a process, a thread fail with "Operation not permitted", whatever tricks of Python led there;
* **Landlock** besides, if the kernel has it: no file, TCP port, signal or abstract socket;
* what is open: a pipe for calls, a pipe for answers, and ``/dev/null``;
* an **empty environment** and the standard library: nothing of this project or of its user is in the process's memory.
  Only :data:`~research.improve.programs.worker.MODULES` can be imported, for the message's sake;
* **limits**: bytes of address space, and for each call seconds of processor time, after which the kernel ends the
  process. One that waits, or has switched its alarm off, is killed from outside by the wall clock;
* answers are numbered **JSON** of at most :data:`LONGEST_ANSWER` bytes: nothing is unpickled, and a program that floods
  the pipe or speaks out of turn is killed.

A call that ends the process loses its own answer alone: the next one finds a new process. Elsewhere there are only the
limits and the empty environment, which hold no malicious program: a sandbox refuses to start unless the variable
``TEXTBENCH_WEAK_SANDBOX`` is ``1``. On Windows there is none.

Every call runs the program's text anew, with the modules as they were, and seeds :mod:`random` by the call's digest, so
equal calls give equal answers in whatever order. A program must not find out which episode it plays, since what an
episode hides follows from its seed. It can read all of its process's memory, so neither the seed nor the key is ever in
it: what crosses the pipe is ``HMAC-SHA256(key, call)``, one call at a time, in the order of these digests.

Not prevented: a program may use a core for as long as its calls may take; one that changes a class, or raw memory, can
leave something for its later calls in the same process, but can't tell which seeds those have; and the kernel's and the
processor's own faults are beyond us.
"""

import contextlib
import hmac
import json
import os
import platform
import secrets
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from research.improve.programs.worker import MACHINES

WEAK = "TEXTBENCH_WEAK_SANDBOX"
"""The environment variable that allows a sandbox if the kernel can't hold a program."""

LONGEST_ANSWER = 1 << 20
"""Bytes of one answer, as JSON."""

_WEAKLY = f"{WEAK}=1, by which only their memory and time are limited"
START_SECONDS = 20.0  # for a process to begin, on a machine that is busy
_WORKER = Path(__file__).with_name("worker.py")


class NoSandboxError(OSError):
    """Programs can't be held here."""


def missing() -> str | None:
    """Return what programs need that isn't here, as far as that is known before one is run; ``None`` if nothing."""
    if not hasattr(select, "poll") or not hasattr(signal, "setitimer"):
        return "Linux, or macOS"
    return None if holds() or os.environ.get(WEAK) == "1" else f"Linux, or {_WEAKLY}"


def holds() -> bool:
    """Return whether a program is held here by more than limits, so that a stranger's may be run."""
    return sys.platform.startswith("linux") and platform.machine() in MACHINES


class Call(NamedTuple):
    """A function's name, its arguments as JSON, and a seed, of which a program sees :func:`digest_of` alone."""

    function: str
    arguments: tuple[Any, ...]
    seed: tuple[int, ...] = ()


def digest_of(call: Call, key: str) -> str:
    """Name a call for the program: it seeds :mod:`random`, and without the key its seed can't be told."""
    return hmac.new(key.encode(), json.dumps(call).encode(), "sha256").hexdigest()


class Answer(NamedTuple):
    """What a call came to: a value, as JSON has it, or in one line why there is none."""

    value: Any = None
    error: str | None = None


class Sandbox:
    """One program in a process that is locked in. Closed by :meth:`close`, as a context, or with its last reference.

    Args:
        harness: the text of a trusted program in the same process, whose functions are called with a module of the
            program's names as their first argument.
        seconds: of processor time for one call; three times as many on the wall clock, and two more.
        memory_mb: megabytes of address space, of which Python itself takes some 30.
        key: makes seeds unreadable; two sandboxes with the same one answer alike. The program's author can't have known
            it. Drawn at random when it isn't given.

    Raises:
        NoSandboxError: programs can't be held on this machine.
        ValueError: a limit that is none.

    Attributes:
        locks: what holds the program, such as ``("rlimits", "landlock", "seccomp")``.
        functions: the names that can be called; empty if the program as a whole fails.
        error: why it fails; ``None`` if it doesn't.
    """

    def __init__(
        self, source: str, *, harness: str = "", seconds: float = 1.0, memory_mb: int = 256, key: str | None = None
    ) -> None:
        if not 0 < seconds <= 3600:
            raise ValueError(f"seconds is a number above 0 and up to 3600, got {seconds!r}")
        if not 64 <= memory_mb <= 1 << 20:
            raise ValueError(f"memory_mb is a whole number of megabytes from 64, got {memory_mb!r}")
        if (needed := missing()) is not None:
            raise NoSandboxError(f"programs can't be run here: that takes {needed}")
        self.seconds, self._wall = seconds, 3 * seconds + 2
        weak = os.environ.get(WEAK) == "1"
        order = {"source": source, "harness": harness, "seconds": seconds, "memory": memory_mb << 20, "weak": weak}
        self._order = json.dumps(order).encode() + b"\n"
        self._lock = threading.Lock()
        self._line: _Line | None = None
        self._key = key or secrets.token_hex(16)
        self.locks: tuple[str, ...] = ()
        self.functions: tuple[str, ...] = ()
        self.error: str | None = None
        self._start()

    def call(self, function: str, *arguments: Any, seed: tuple[int, ...] = ()) -> Answer:
        return self.calls([Call(function, arguments, seed)])[0]

    def calls(self, calls: Sequence[Call]) -> list[Answer]:
        """Return the answers to some calls, in order. One that fails, hangs or ends the process has its error alone."""
        digests = [digest_of(call, self._key) for call in calls]
        answers: dict[int, Answer] = {}
        with self._lock:
            for at in sorted(range(len(calls)), key=digests.__getitem__):  # an order that tells nothing
                answers[at] = self._answer(digests[at], calls[at])
        return [answers[at] for at in range(len(calls))]

    def close(self) -> None:
        """End the process; a further call begins another one."""
        self._end()
        self._line = None

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _start(self) -> None:
        self._line = line = _Line(f"it took more than {self.seconds:g} seconds")
        self._end = weakref.finalize(self, line.end)
        try:
            line.send(self._order, START_SECONDS)
            kind, locks = line.receive(START_SECONDS)[1:]
        except _SilentError as silent:
            self.close()
            raise NoSandboxError(f"the process for a program doesn't begin: {silent}") from None
        if kind != "locked":
            self.close()
            raise NoSandboxError(f"programs can't be held here ({locks}): where you trust them, set {_WEAKLY}")
        self.locks = tuple(locks)
        found = self._received("functions")
        self.error, self.functions = found.error, tuple(found.value or ())

    def _answer(self, digest: str, call: Call) -> Answer:
        """Return the answer to one call, in a new process if the last one has ended."""
        if self._line is None:
            self._start()
        if self.error is not None:
            return Answer(error=self.error)
        assert self._line is not None
        try:
            self._line.send(json.dumps([digest, call.function, call.arguments]).encode() + b"\n", self._wall)
        except _SilentError as silent:
            self.close()
            return Answer(error=str(silent))
        return self._received(digest)

    def _received(self, name: str) -> Answer:
        """Return the answer of this name; the process is ended if it doesn't come, or no memory is left in it."""
        assert self._line is not None
        try:
            told = self._line.receive(self._wall)
        except _SilentError as silent:
            self.close()
            return Answer(error=str(silent))
        match told:
            case [str(found), "value", value] if found == name:
                return Answer(value)
            case [str(found), "error", str(error)] if found == name:
                if error.startswith("MemoryError"):
                    self.close()
                return Answer(error=error)
        self.close()
        return Answer(error="the program wrote something else than an answer")


class _SilentError(Exception):
    """No answer came; says what happened in place of it."""


class _Line:
    """The process and the two pipes to it; ``too_late`` is the error of an answer that doesn't come in time."""

    def __init__(self, too_late: str) -> None:
        self._too_late = too_late
        command = [sys.executable, "-P", "-s", "-S", "-B", "-X", "utf8", str(_WORKER)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PYTHONHASHSEED": "0"},  # sets of texts are in the same order in every process
            start_new_session=True,  # a Ctrl-C is for us
            bufsize=0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._to, False)
        self._read = bytearray()

    def send(self, data: bytes, seconds: float) -> None:
        """Write a line; what doesn't read it within ``seconds`` is silent."""
        deadline, left = time.monotonic() + seconds, memoryview(data)
        while left:
            self._wait(self._to, select.POLLOUT, deadline)
            try:
                left = left[os.write(self._to, left) :]
            except BrokenPipeError:
                raise _SilentError(self._how_it_ended()) from None

    def receive(self, seconds: float) -> Any:
        deadline, searched = time.monotonic() + seconds, 0
        while (end := self._read.find(b"\n", searched)) < 0:
            searched = len(self._read)
            if searched > LONGEST_ANSWER:
                raise _SilentError(f"it answered with more than {LONGEST_ANSWER:,} bytes")
            self._wait(self._from, select.POLLIN, deadline)
            data = os.read(self._from, 1 << 16)
            if not data:
                raise _SilentError(self._how_it_ended())
            self._read += data
        line = bytes(self._read[:end])
        del self._read[: end + 1]
        try:
            return json.loads(line)
        except (ValueError, RecursionError):
            raise _SilentError("it wrote something else than an answer") from None

    def end(self) -> None:
        process = self._process
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _wait(self, pipe: int, event: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(pipe, event)
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise _SilentError(self._too_late)

    def _how_it_ended(self) -> str:
        code = self._process.wait()
        if code == -signal.SIGPROF:
            return self._too_late
        return f"it ended its process ({signal.Signals(-code).name if code < 0 else f'exit {code}'})"
