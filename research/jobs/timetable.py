"""How long the jobs of an experiment take: typical seconds of each, corrected by what this run's own jobs took so far.

What the jobs of this run cost, finished or not, is blended with the typical seconds, and counts the more the more there
is of it. So nothing is measured beforehand, and no single job makes the estimate jump.
"""

import time
from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from agents.common import PlainConsole, duration
from research.jobs.folder import AnyJob, Folder

_PRIOR_SECONDS = 60.0  # of work for which the typical seconds count as much as what was measured


class Timetable:
    """An estimate of how long what is left of all ``jobs`` will take, so many ``processes`` at a time.

    ``typical`` is ``{job: seconds that it takes where these were measured}``; results have the seconds that they took.
    """

    def __init__(self, typical: Mapping[str, float], folder: Folder, jobs: Sequence[AnyJob], processes: int) -> None:
        self.jobs: dict[str, AnyJob] = {job.name: job for job in jobs}
        self.processes = processes
        self.typical = dict(typical)
        self.left: list[AnyJob] = [job for job in jobs if not folder.is_done(job.name)]
        self._shares = dict.fromkeys(self.jobs, 1.0) | {job.name: 0.0 for job in self.left}
        self._order = tuple(TopologicalSorter({job.name: job.needs for job in jobs}).static_order())
        self._folder = folder
        # What was measured: {job: (typical seconds of the part of it that was watched, seconds that this part took)}.
        self._measured: dict[str, tuple[float, float]] = {}
        for job in jobs:
            if job not in self.left:
                self.done(job.name)
        self._watched: dict[str, tuple[float, float]] = {}  # {job: (share, time) when it was first seen to move}

    def progress(self, shares: Mapping[str, float]) -> None:
        """Take note of how far the running jobs are: ``{job: share}``."""
        now = time.monotonic()
        for name, share in shares.items():
            self._shares[name] = share
            if share > 0:  # not from the start of a job: it may resume from a checkpoint
                began, since = self._watched.setdefault(name, (share, now))
                self._measured[name] = ((share - began) * self.typical[name], now - since)

    def done(self, name: str) -> float:
        """Take note of a job's end; returns the seconds that it took."""
        seconds = float(self._folder.result(name)["seconds"])
        self.left = [job for job in self.left if job.name != name]
        self._shares[name], self._measured[name] = 1.0, (self.typical[name], seconds)
        return seconds

    def done_share(self) -> float:
        """Return how much of the whole work is done, in [0, 1]."""
        done = sum(self.typical[name] * share for name, share in self._shares.items())
        return done / sum(self.typical.values())

    def seconds_left(self) -> float:
        """Until the last job is done, if none waits for a process longer than the work or its own needs make it."""
        overall, kinds = _blend(1.0, list(self._measured.values())), {job.kind for job in self.jobs.values()}
        # ``{kind: seconds that a typical second takes here}``; a kind that wasn't seen yet goes at the pace of all
        pace = {
            kind: _blend(overall, [pair for name, pair in self._measured.items() if self.jobs[name].kind == kind])
            for kind in kinds
        }
        left = {name: (1 - self._shares[name]) * self.typical[name] * pace[job.kind] for name, job in self.jobs.items()}
        ends: dict[str, float] = {}  # when each job can be done at the earliest
        for name in self._order:
            ends[name] = left[name] + max((ends[need] for need in self.jobs[name].needs), default=0.0)
        return max(sum(left.values()) / self.processes, max(ends.values()))


def _blend(prior: float, measured: Sequence[tuple[float, float]]) -> float:
    typical, took = sum(pair[0] for pair in measured), sum(pair[1] for pair in measured)
    return (prior * _PRIOR_SECONDS + took) / (_PRIOR_SECONDS + typical)


class ProgressDisplay:
    """Shows how far the jobs are, and how long the rest takes by the timetable, which it keeps informed."""

    def __init__(self, timetable: Timetable, *, quiet: bool = False) -> None:
        self._timetable, self._quiet = timetable, quiet
        self._console = PlainConsole(stderr=True, soft_wrap=True)
        self._live = self._console.is_terminal and not quiet
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
        left = TextColumn("{task.fields[left]}")
        self._progress = Progress(*columns, TimeElapsedColumn(), left, console=self._console, transient=True)
        self._whole = self._progress.add_task("whole experiment", total=1.0, left="")
        self._rows: dict[str, TaskID] = {}

    def __enter__(self) -> "ProgressDisplay":
        if self._live:
            self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live:
            self._progress.stop()

    def progress(self, shares: Mapping[str, float]) -> None:
        self._timetable.progress(shares)
        for job, share in shares.items():
            if job not in self._rows:
                self._rows[job] = self._progress.add_task(job, total=1.0, left="")
            self._progress.update(self._rows[job], completed=share)
        left = f"about {duration(self._timetable.seconds_left())} left"
        self._progress.update(self._whole, completed=self._timetable.done_share(), left=left)

    def done(self, job: str) -> None:
        took = duration(self._timetable.done(job))
        if job in self._rows:
            self._progress.remove_task(self._rows.pop(job))
        total, to_do = len(self._timetable.jobs), len(self._timetable.left)
        left = f", about {duration(self._timetable.seconds_left())} left" if to_do else ""
        if not self._quiet:
            self._console.print(f"{job} done in {took} ({total - to_do} of {total}{left})")

    def failed(self, job: str, error: BaseException) -> None:
        if job in self._rows:
            self._progress.remove_task(self._rows.pop(job))
        if not self._quiet:
            self._console.print(f"{job} failed, the others go on: {type(error).__name__}: {error}")
