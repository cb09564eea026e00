"""The progress of a reproduction on stderr: a bar for the whole and one for each running job; lines where stderr is
no terminal."""

import sys
import time
from collections.abc import Mapping
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from agents.clock import duration


class ProgressDisplay:
    """Shows how far the jobs are, weighted by how long they are expected to take.

    Args:
        seconds: ``{job: expected seconds}`` of all jobs.
        done: names of those that have their result already.
        processes: how many work at the same time.
        quiet: show nothing.
    """

    def __init__(self, seconds: Mapping[str, float], done: set[str], processes: int, *, quiet: bool = False) -> None:
        self._seconds, self._done, self._processes, self._quiet = dict(seconds), set(done), processes, quiet
        self._shares: dict[str, float] = {}
        self._console = Console(stderr=True)
        self._live = self._console.is_terminal and not quiet
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=self._console,
            transient=True,
        )
        self._rows: dict[str, TaskID] = {}
        self._started = time.monotonic()
        self._before = sum(self._seconds[name] for name in self._done)

    def __enter__(self) -> "ProgressDisplay":
        if self._live:
            self._whole = self._progress.add_task("whole experiment", total=sum(self._seconds.values()), left="")
            self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._live:
            self._progress.stop()

    def progress(self, job: str, share: float) -> None:
        """See :class:`benchmark.reproduce.schedule.Display`."""
        self._shares[job] = share
        if not self._live:
            return
        if job not in self._rows:
            self._rows[job] = self._progress.add_task(job, total=1.0, left="")
        self._progress.update(self._rows[job], completed=share)
        self._update_whole()

    def done(self, job: str, seconds: float) -> None:
        """See :class:`benchmark.reproduce.schedule.Display`."""
        self._done.add(job)
        self._shares.pop(job, None)
        if job in self._rows:
            self._progress.remove_task(self._rows.pop(job))
        if self._live:
            self._update_whole()
        if not self._quiet:
            left = f", about {duration(self.seconds_left())} left" if len(self._done) < len(self._seconds) else ""
            message = f"{job} done in {duration(seconds)} ({len(self._done)} of {len(self._seconds)}{left})"
            if self._live:
                self._console.print(message, highlight=False)
            else:
                print(message, file=sys.stderr, flush=True)

    def seconds_left(self) -> float:
        """At the pace so far where there is one, else as expected."""
        total, finished = sum(self._seconds.values()), self._finished()
        elapsed, here = time.monotonic() - self._started, finished - self._before
        pace = elapsed / here if here > 0.02 * total else 1 / self._processes
        return (total - finished) * pace

    def _finished(self) -> float:
        done = sum(self._seconds[name] for name in self._done)
        return done + sum(self._seconds[name] * share for name, share in self._shares.items())

    def _update_whole(self) -> None:
        left = f"{duration(self.seconds_left())} left"
        self._progress.update(self._whole, completed=self._finished(), left=left)
