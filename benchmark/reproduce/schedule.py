"""All jobs of a reproduction in several processes: which is next, how far each is, and what happens when one fails.

Workers live in process groups of their own, so Ctrl-C reaches only this process, which passes it on once: a training
run then writes its checkpoint, and the next start goes on from there. A worker hears it only while it does a job:
raised while Python starts, or runs finalizers at its end, it would be a traceback on the terminal.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, Protocol

from benchmark.errors import BenchmarkError
from benchmark.reproduce.jobs import Folder, Job
from benchmark.reproduce.settings import Experiment

STOP_SECONDS = 60.0
"""How long workers may take to write their checkpoints after Ctrl-C."""


class JobFailedError(BenchmarkError):
    """A job raised an error or its process was killed; what was done before is kept."""


class Display(Protocol):
    """What shows the progress."""

    def progress(self, job: str, share: float) -> None:
        """A job has done this share of its work, in [0, 1]."""

    def done(self, job: str, seconds: float) -> None:
        """A job has its result."""


class _Worker(NamedTuple):
    process: Any
    connection: Connection


def run_jobs(experiment: Experiment, folder: Folder, jobs: Sequence[Job], processes: int, display: Display) -> None:
    """Do every job that has no result yet.

    Raises:
        JobFailedError: one failed; the others that were running are stopped as by Ctrl-C.
        KeyboardInterrupt: after Ctrl-C, once the workers have written their checkpoints.
    """
    waiting = [job for job in jobs if not folder.is_done(job.name)]
    if not waiting:
        return
    context = multiprocessing.get_context("spawn")  # forking a process that has loaded torch is unsafe
    workers = [_start(context, experiment, folder.path) for _ in range(min(processes, len(waiting)))]
    busy: dict[Connection, tuple[Job, float]] = {}
    try:
        while waiting or busy:
            for worker in workers:
                job = None if worker.connection in busy else _next(waiting, folder)
                if job is not None:
                    waiting.remove(job)
                    busy[worker.connection] = (job, time.perf_counter())
                    worker.connection.send(job)
            for connection in wait(list(busy)):
                assert isinstance(connection, Connection)
                job, since = busy[connection]
                if _hear(connection, job, display, folder):
                    display.done(job.name, time.perf_counter() - since)
                    del busy[connection]
    except BaseException:
        _stop(workers, interrupt=True)
        raise
    _stop(workers, interrupt=False)


def _next(waiting: Sequence[Job], folder: Folder) -> Job | None:
    """The first job whose needs are met; the order of the list is the order of importance."""
    return next((job for job in waiting if all(folder.is_done(need) for need in job.needs)), None)


def _hear(connection: Connection, job: Job, display: Display, folder: Folder) -> bool:
    """Take one message of a worker; whether its job is done now."""
    try:
        kind, content = connection.recv()
    except EOFError:
        raise JobFailedError(
            f"{job.name}: its process was killed (out of memory?); what is done is kept, go on with "
            f"textbench reproduce --out {folder.path}"
        ) from None
    if kind == "progress":
        display.progress(job.name, content)
        return False
    if kind == "error":
        raise JobFailedError(
            f"{job.name} failed: {content}; what is done is kept, the whole error is in {folder.path}/errors.txt"
        )
    return True


def _start(context: Any, experiment: Experiment, path: Path) -> _Worker:
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, experiment, path), daemon=True)
    resource_tracker.ensure_running()  # else started with the first worker, and then it unblocks what is blocked here
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()  # which inherits the mask
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    theirs.close()
    return _Worker(process, ours)


def _stop(workers: Sequence[_Worker], *, interrupt: bool) -> None:
    """Let workers end: idle ones at once, busy ones (with ``interrupt``) after their checkpoint."""
    for worker in workers:
        with contextlib.suppress(OSError):
            worker.connection.send(None)
        if interrupt and worker.process.is_alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker.process.pid, signal.SIGINT)
    deadline = time.monotonic() + STOP_SECONDS
    for worker in workers:
        worker.process.join(max(0.1, deadline - time.monotonic()))
        if worker.process.is_alive():
            worker.process.kill()
        worker.connection.close()


def _work(connection: Connection, experiment: Experiment, path: Path) -> None:
    """A worker's life: do what comes until nothing more comes."""
    os.setpgrp()
    stop = _Stop()
    folder = Folder(path)
    try:
        from benchmark.reproduce.work import do

        throttle = _Throttle(connection, stop)
        while (job := connection.recv()) is not None:
            try:
                with stop.heard():
                    do(job, experiment, folder, throttle)
                connection.send(("done", None))
            except Exception as error:  # noqa: BLE001 - whatever it is, the person at the terminal must see it
                if stop.wanted:
                    return  # what a library made of Ctrl-C
                with (path / "errors.txt").open("a", encoding="utf-8") as file:
                    file.write(f"{job.name}\n{traceback.format_exc()}\n")
                connection.send(("error", f"{type(error).__name__}: {error}"))
    except (KeyboardInterrupt, EOFError, BrokenPipeError):
        return  # the parent wants us to stop, or is gone


class _Stop:
    """Ctrl-C in a worker: raised where a job is done, else only remembered; made once in the process's life.

    Attributes:
        wanted: whether it came.
    """

    def __init__(self) -> None:
        self.wanted = self._heard = False
        sys.unraisablehook = _hide_interrupt
        signal.signal(signal.SIGINT, self._take)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # blocked since _start

    def _take(self, number: int, frame: FrameType | None) -> None:
        self.wanted = True
        if self._heard:
            raise KeyboardInterrupt

    def check(self) -> None:
        """Raise the ``KeyboardInterrupt`` that came before this, or that was lost in a finalizer."""
        if self.wanted:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        """Within this, Ctrl-C raises ``KeyboardInterrupt``; so does one that came before."""
        self._heard = True
        try:
            self.check()
            yield
        finally:
            self._heard = False


def _hide_interrupt(unraisable: "sys.UnraisableHookArgs") -> None:
    """Say nothing of Ctrl-C in a finalizer, where Python can't raise it; :class:`_Stop` remembers it."""
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)


class _Throttle:
    """Sends progress at most every half a second."""

    def __init__(self, connection: Connection, stop: _Stop) -> None:
        self._connection, self._stop, self._sent = connection, stop, 0.0

    def __call__(self, job: str, share: float) -> None:
        self._stop.check()
        now = time.monotonic()
        if now - self._sent >= 0.5:
            self._sent = now
            self._connection.send(("progress", share))
