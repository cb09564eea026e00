"""The progress of an experiment on stderr: on a terminal a bar for the whole and one for each running job, elsewhere a
line for each job that is done."""

from collections.abc import Mapping

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from agents.common import PlainConsole, duration
from research.jobs.timetable import Timetable


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
