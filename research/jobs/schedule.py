"""All jobs of an experiment in several processes: which is next, how far each is, and what happens when one fails.

:mod:`graphlib` says which jobs can start, :mod:`concurrent.futures` runs them. The main process and its workers share
two small pieces of memory: how far each job is, and whether to stop. Ctrl-C reaches only the main process. A worker
looks at every progress of its job whether it should stop; a training run then writes its checkpoint, and the next start
resumes from it. So there is no moment, while Python starts or runs finalizers, in which Ctrl-C could meet a worker
and print a traceback.
"""

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from graphlib import TopologicalSorter
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any

from agents.common import open_for_appending
from benchmark import BenchmarkError
from research.jobs.folder import AnyJob, Folder
from research.jobs.work import Work, do

if TYPE_CHECKING:
    from research.jobs.timetable import ProgressDisplay  # a worker has no use for it

STOP_SECONDS = 10.0
"""How long workers have after Ctrl-C to write their checkpoints. Killed after that, they lose what came since the last
one."""

_LOOK_SECONDS = 0.5  # between two looks at the jobs' progress


class JobFailedError(BenchmarkError):
    """A job raised an error or its process was killed; what the others did is kept."""


def run_jobs(
    experiment: Any,
    folder: Folder,
    jobs: Sequence[AnyJob],
    work: Mapping[str, Work],
    processes: int,
    display: "ProgressDisplay",
    *,
    threads: int | None = None,
) -> None:
    """Do every job that has no result yet, the first of those that can start before the others.

    Args:
        experiment: the settings, handed to every job.
        jobs: all of them, done or not, in the order of importance.
        work: ``{kind: function}``, by which the jobs of a kind are done.
        processes: jobs at a time.
        threads: of PyTorch in each process; without it the processes share the cores.

    Raises:
        JobFailedError: some raised an error and all that don't need them are done; or a process was killed, and the
            others are stopped as by Ctrl-C.
        KeyboardInterrupt: after Ctrl-C, once the workers have written their checkpoints.
    """
    left = {job.name: job for job in jobs if not folder.is_done(job.name)}
    if not left:
        return
    slots = {name: slot for slot, name in enumerate(left)}  # also the order of importance
    order = TopologicalSorter({name: [need for need in job.needs if need in left] for name, job in left.items()})
    order.prepare()
    context = multiprocessing.get_context("spawn")  # forking a process that has loaded torch is unsafe
    shares, stop = context.RawArray("d", len(left)), context.RawValue("b", False)
    executor = ProcessPoolExecutor(min(processes, len(left)), context, begin, (shares, stop, processes, threads))
    errors = folder.path / "errors.txt"
    waiting: list[str] = []
    running: dict[Future[None], str] = {}
    failed: dict[str, BaseException] = {}
    with stopping(executor, stop):
        while True:
            # No more jobs are handed out than there are processes, so that a job which becomes important can overtake.
            waiting = sorted([*waiting, *order.get_ready()], key=slots.__getitem__)
            while waiting and len(running) < processes:
                name = waiting.pop(0)
                job = left[name]
                running[submit(executor, _work, work[job.kind], job, slots[name], experiment, folder)] = name
            if not running:
                break
            finished, _ = wait(running, _LOOK_SECONDS, FIRST_COMPLETED)
            display.progress({name: shares[slots[name]] for name in running.values()})
            for future in finished:
                error = future.exception()
                if isinstance(error, BrokenProcessPool):
                    raise JobFailedError(
                        "a process was killed (out of memory?) while these jobs were running: "
                        f"{', '.join(running.values())}; what is done is kept, go on with the same command (--out "
                        f"{folder.path}), with fewer --jobs where memory was short"
                    )
                name = running.pop(future)
                if error is None:
                    display.done(name)
                    order.done(name)
                else:
                    failed[name] = error
                    with os.fdopen(open_for_appending(errors), "a", encoding="utf-8") as stream:
                        stream.write(f"{name}\n{''.join(traceback.format_exception(error))}\n")
                    display.failed(name, error)
    if failed:
        name, first = next(iter(failed.items()))
        undone = sum(not folder.is_done(each) for each in left)
        raise JobFailedError(
            f"{name} failed: {type(first).__name__}: {first}; {len(failed)} failed, and with what needs them {undone} "
            f"aren't done; what is done is kept, all errors are in {errors}"
        )


@contextmanager
def stopping(executor: ProcessPoolExecutor, stop: Any) -> Iterator[None]:
    """Whatever ends the block, no worker outlives it: they are asked to stop, and killed when they take too long."""
    others = set(multiprocessing.active_children())

    def kill() -> None:
        for process in set(multiprocessing.active_children()) - others:
            process.kill()

    killer = threading.Timer(STOP_SECONDS, kill)
    try:
        yield
    except BaseException:
        stop.value = True
        killer.start()
        raise
    finally:
        try:
            executor.shutdown(cancel_futures=True)  # waits for the workers
        finally:  # also after a second Ctrl-C, which ends that wait
            killer.cancel()
            kill()


def submit(executor: ProcessPoolExecutor, work: Callable[..., None], *arguments: Any) -> "Future[None]":
    """Submit work with signals held back, since a worker may be started for it.

    The worker inherits that, so it never hears Ctrl-C; and here an interrupt can't fall between the start of a process
    and the executor's note of it.
    """
    held = {signal.SIGINT, signal.SIGTERM}
    resource_tracker.ensure_running()  # else started with the first worker, and it lets signals through
    signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        return executor.submit(work, *arguments)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, held)


_shares: Any = None  # in a worker: the shares of all jobs, in memory that the main process reads
_stop: Any = None  # in a worker: whether the main process wants the workers to stop


def begin(shares: Any, stop: Any, processes: int, threads: int | None) -> None:
    """Make this process one of several workers, before it imports torch."""
    global _shares, _stop  # shared memory reaches a worker at its start only, not with a job
    _shares, _stop = shares, stop
    if threads is None:
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, default_processes() // processes)))
    else:  # whatever the user's environment says: sums are rounded differently with another number
        os.environ["OMP_NUM_THREADS"] = str(threads)
    os.setpgrp()  # a SIGTERM to the whole group is for the main process, which then stops its workers
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})  # SIGINT stays held back
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End at once when the main process was killed, which an idle worker wouldn't notice by itself."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _work(work: Work, job: AnyJob, slot: int, experiment: Any, folder: Folder) -> None:
    def report(share: float) -> None:
        _shares[slot] = share
        if _stop.value:
            raise KeyboardInterrupt

    report(0.0)
    try:
        do(work, job, experiment, folder, report)
    except Exception as error:
        told = _sendable(error)
        if told is error:  # raised from itself it would lose its cause
            raise
        raise told from error


def _sendable(error: Exception) -> Exception:
    """Return the error, or its words if it can't be made again from what is pickled of it.

    Such an error would break the pool when the main process reads it, and be told as a killed process.
    """
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - whatever its class does when it is made
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def default_processes() -> int:
    """As many as there are cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
