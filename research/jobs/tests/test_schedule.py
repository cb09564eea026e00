"""The workers of a reproduction: the order of their jobs, and signals at every moment of their lives."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from types import SimpleNamespace

import pytest

from agents.msgrpo.warmup.demonstrations import TooFewDecisionsError
from research.jobs import schedule
from research.jobs.schedule import STOP_SECONDS, JobFailedError, begin, default_processes, run_jobs, submit
from research.reproduction.jobs import Job, ReproductionFolder
from research.reproduction.settings import Experiment
from research.reproduction.work import WORK


class Recorder:
    """A display that remembers what it was shown, and does something once a job has moved."""

    def __init__(self, at_progress=lambda: None) -> None:
        self.finished, self.errors, self._at_progress = [], {}, at_progress

    def progress(self, shares) -> None:
        if any(share > 0 for share in shares.values()):
            self._at_progress()

    def done(self, job: str) -> None:
        self.finished.append(job)

    def failed(self, job: str, error: BaseException) -> None:
        self.errors[job] = error


def pool(processes: int = 1, threads: int | None = 1) -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")
    shared = (context.RawArray("d", 1), context.RawValue("b", False))
    return ProcessPoolExecutor(1, context, begin, (*shared, processes, threads))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("threads", "user", "processes", "wanted"),
    [
        (1, "5", 1, "1"),  # an experiment's own number holds, so that the outcome doesn't depend on --jobs
        (None, "5", 2, "5"),
        (None, None, 1, str(default_processes())),  # one job has all cores
        (None, None, 10_000, "1"),
    ],
)
def test_a_worker_has_the_threads_of_its_experiment_or_its_share_of_the_cores(
    threads, user, processes, wanted, monkeypatch
):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if user is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", user)
    with pool(processes, threads) as executor:
        assert submit(executor, os.getenv, "OMP_NUM_THREADS").result(60) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.0, 0.1, 1.0])
def test_ctrl_c_says_nothing_in_a_worker_that_starts_works_waits_or_ends(delay, capfd):
    """No traceback while Python starts in it, while it works or waits, and while it runs its finalizers."""
    executor = pool()
    work = submit(executor, time.sleep, 0.05)
    (worker,) = multiprocessing.active_children()
    time.sleep(delay)
    os.kill(worker.pid, signal.SIGINT)
    work.result(60)
    executor.shutdown(wait=False)
    while worker.is_alive():
        with suppress(ProcessLookupError):  # it may end between the two lines
            os.kill(worker.pid, signal.SIGINT)
        time.sleep(0.002)
    assert worker.exitcode == 0
    assert capfd.readouterr() == ("", "")


IDLE = """
import time
from research.jobs.tests.test_schedule import pool, submit

if __name__ == "__main__":
    executor = pool()
    submit(executor, time.sleep, 0.1).result()
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.mark.slow
def test_workers_end_with_a_main_process_that_was_killed():
    """Idle ones too, and at once: the same command must find nobody at work in the folder."""
    main = subprocess.Popen([sys.executable, "-c", IDLE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert main.stdout.readline() == "ready\n"
    main.kill()
    main.communicate(timeout=60)  # it waits for all who could write there: a worker that lives on would be one


def test_an_error_that_the_main_process_could_not_read_is_told_in_words(monkeypatch):
    def working(error: Exception, cause: Exception | None = None):
        def fail(*_) -> None:
            raise error from cause

        monkeypatch.setattr(schedule, "do", fail)
        schedule._work(None, None, 0, None, None)

    monkeypatch.setattr(schedule, "_shares", [0.0])
    monkeypatch.setattr(schedule, "_stop", SimpleNamespace(value=False))
    with pytest.raises(RuntimeError, match=r"^TooFewDecisionsError: random takes 3 decisions$") as raised:
        working(TooFewDecisionsError("random takes 3 decisions", 3))
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
    with pytest.raises(FileNotFoundError, match="/nowhere") as kept:  # others stay what they are
        working(FileNotFoundError("/nowhere"), KeyError("the cause"))
    assert isinstance(kept.value.__cause__, KeyError)


@pytest.mark.slow
def test_a_job_overtakes_less_important_ones_and_a_failing_one_keeps_only_what_needs_it_from_being_done(tmp_path):
    folder, display = ReproductionFolder(tmp_path), Recorder()
    needs = {"first": "third", "second": "", "third": "", "fourth": "before", "fifth": "", "sixth": "fifth"}
    needs |= {"seventh": "", "before": ""}
    jobs = [
        Job(f"play/{name}", "play", (f"play/{need}",) if need else (), "small" if name == "fifth" else "random")
        for name, need in needs.items()
    ]  # the model "small" isn't there
    folder.write_result("play/before", {})
    with pytest.raises(JobFailedError, match=r"fifth failed: .*; 1 failed, .* 2 aren't done; .*errors\.txt"):
        run_jobs(Experiment.read("miniature"), folder, jobs, WORK, 1, display, threads=1)
    assert display.finished == ["play/second", "play/third", "play/first", "play/fourth", "play/seventh"]
    assert all(folder.is_done(name) for name in display.finished)
    assert not folder.is_done("play/sixth")
    assert [*display.errors] == ["play/fifth"]
    errors = (tmp_path / "errors.txt").read_text()
    assert errors.startswith("play/fifth\n")
    assert "Traceback" in errors
    assert multiprocessing.active_children() == []


def run_long(folder, processes: int, at_progress) -> None:
    """Begin two jobs of the miniature with play that takes minutes."""
    play = [Job(f"play/{name}", "play", (), "random") for name in ("one", "other")]
    experiment = Experiment.read("miniature").model_copy(update={"final_episodes": 100_000})
    run_jobs(experiment, ReproductionFolder(folder), play, WORK, processes, Recorder(at_progress), threads=1)


@pytest.mark.slow
def test_ctrl_c_ends_jobs_at_their_next_progress(tmp_path, capfd):
    interrupted = []

    def interrupt() -> None:
        interrupted.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10)

    with pytest.raises(KeyboardInterrupt):
        run_long(tmp_path, 1, interrupt)
    assert len(interrupted) == 1
    assert time.monotonic() - interrupted[0] < STOP_SECONDS + 60  # the jobs would have taken minutes
    assert multiprocessing.active_children() == []
    assert list(tmp_path.rglob("result.json")) == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_a_killed_worker_is_said_with_what_was_running(tmp_path):
    def kill() -> None:
        for child in multiprocessing.active_children()[:1]:  # there are none any more when progress is told once more
            child.kill()

    with pytest.raises(JobFailedError, match=r"a process was killed .*: play/one, play/other; what is done"):
        run_long(tmp_path, 2, kill)
    assert multiprocessing.active_children() == []
