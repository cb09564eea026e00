"""The workers of a reproduction, and Ctrl-C at every moment of their lives."""

import multiprocessing
import os
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from benchmark.reproduce import schedule
from benchmark.reproduce.jobs import Job
from benchmark.reproduce.settings import read_experiment


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.1, 0.3, 1.0])
def test_ctrl_c_says_nothing_in_a_worker_that_starts_waits_or_ends(
    delay: float, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """No traceback while Python starts in it, while it waits for a job, and while it runs its finalizers."""
    context = multiprocessing.get_context("spawn")
    worker = schedule._start(context, read_experiment("miniature"), tmp_path)
    time.sleep(delay)
    os.kill(worker.process.pid, signal.SIGINT)
    worker.connection.send(None)
    deadline = time.monotonic() + 30
    while worker.process.is_alive() and time.monotonic() < deadline:
        os.kill(worker.process.pid, signal.SIGINT)
        time.sleep(0.002)
    assert worker.process.exitcode in (0, -signal.SIGINT)  # the latter where Python had already let go of signals
    assert capfd.readouterr() == ("", "")


def test_ctrl_c_ends_a_worker_that_has_a_job(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Also one that came before the job: nothing is done, and it is no failure."""
    context = multiprocessing.get_context("spawn")
    worker = schedule._start(context, read_experiment("miniature"), tmp_path)
    os.kill(worker.process.pid, signal.SIGINT)
    worker.connection.send(Job("pretrain/small", "pretrain", agent="small"))
    worker.process.join(60)
    assert worker.process.exitcode == 0
    with pytest.raises(EOFError):
        worker.connection.recv()
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_lost_in_a_finalizer_is_raised_at_the_next_progress(capfd: pytest.CaptureFixture[str]) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_lose_it, args=(theirs,))
    process.start()
    theirs.close()
    process.join(60)
    assert ours.recv() == ("lost", True)
    assert ours.recv() == ("raised", True)
    assert capfd.readouterr() == ("", "")


def _lose_it(connection: Connection) -> None:
    """In a process of its own, since it sets the hook and the handler."""

    class Loses:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0)

    stop = schedule._Stop()
    throttle = schedule._Throttle(connection, stop)
    with stop.heard():
        Loses()
        connection.send(("lost", stop.wanted))
        try:
            throttle("job", 0.5)
        except KeyboardInterrupt:
            connection.send(("raised", True))
