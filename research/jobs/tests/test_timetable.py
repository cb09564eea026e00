"""The estimate of the time that is left: from the table, then more and more from what the jobs took."""

import time
from itertools import pairwise

import pytest

from research.jobs.timetable import Timetable
from research.reproduction.jobs import ReproductionFolder, jobs_of, typical_seconds
from research.reproduction.settings import Experiment


@pytest.fixture
def timetable(tmp_path):
    def make(processes: int = 1) -> Timetable:
        experiment = Experiment.read("full")
        jobs = jobs_of(experiment)
        return Timetable(typical_seconds(experiment, jobs), ReproductionFolder(tmp_path), jobs, processes)

    return make


def test_more_work_takes_longer(timetable):
    typical = timetable().typical
    assert typical["pretrain/large"] > 3 * typical["pretrain/small"]
    assert typical["train/frozen-lake/all/0"] > typical["train/frozen-lake/aaw/0"]
    assert typical["train/snake/aaw/0"] > typical["train/frozen-lake/aaw/0"]  # longer episodes on larger boards
    assert typical["play/large"] > typical["play/small"] > typical["control/small"]
    double = Experiment.read("full", {"iterations": 240})
    job = next(job for job in jobs_of(double) if job.kind == "train")
    longer = typical_seconds(double, [job])[job.name]
    assert longer == pytest.approx(2 * typical[job.name], rel=0.05)


@pytest.mark.slow
def test_processes_share_the_work_but_needs_wait(timetable):
    one, two, many = (timetable(processes).seconds_left() for processes in (1, 2, 1000))
    typical = timetable().typical
    assert (one, two) == (pytest.approx(sum(typical.values())), pytest.approx(one / 2))
    assert many == pytest.approx(typical["pretrain/large"] + typical["play/large"])


@pytest.mark.slow
def test_a_slow_machine_is_believed_step_by_step(timetable, tmp_path):
    """Every job takes three times as long as the table says: the whole time that is foretold rises, and never jumps."""
    folder, clock, elapsed = ReproductionFolder(tmp_path), timetable(), 0.0
    foretold = [clock.seconds_left()]
    for job in list(clock.left):
        elapsed += 3 * clock.typical[job.name]
        folder.write_result(job.name, {"seconds": 3 * clock.typical[job.name]})
        clock.done(job.name)
        foretold.append(elapsed + clock.seconds_left())
    assert foretold[-1] == pytest.approx(3 * foretold[0])
    assert foretold[1] > 2 * foretold[0]  # the first base alone tells most of it
    assert all(abs(now / then - 1) < 0.06 for then, now in pairwise(foretold[1:]))
    again = timetable()
    assert (again.left, again.seconds_left(), again.done_share()) == ([], 0.0, 1.0)


def test_one_kind_of_job_that_is_slower_than_the_table_says_slows_that_kind(timetable, tmp_path):
    clock, name = timetable(), "train/snake/aaw/0"
    before = clock.seconds_left()
    ReproductionFolder(tmp_path).write_result(name, {"seconds": 2 * clock.typical[name]})
    clock.done(name)
    trained = sum(seconds for job, seconds in clock.typical.items() if job.startswith("train/") and job != name)
    assert clock.seconds_left() > before + 0.8 * trained - clock.typical[name]


def test_a_running_job_counts_from_where_it_was_taken_up(timetable, monkeypatch):
    """A run that resumes from a checkpoint at 60% has not done those 60% in the first second."""
    clock, now, name = timetable(), time.monotonic(), "train/frozen-lake/aaw/0"
    expected = clock.seconds_left() - 0.7 * clock.typical[name]
    monkeypatch.setattr(time, "monotonic", lambda: now)
    clock.progress({name: 0.6})
    now += 0.1 * clock.typical[name]
    clock.progress({name: 0.7})
    assert clock.seconds_left() == pytest.approx(expected)
    assert clock.done_share() == pytest.approx(0.7 * clock.typical[name] / sum(clock.typical.values()))
