"""What the commands of all experiments do: claim a folder, estimate, work, report.

``undertaking -> folder -> jobs -> results -> report``.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agents.common import FolderLock, duration, kills_interrupt
from benchmark import StorageError, UsageError
from research.jobs.folder import AnyJob, Folder
from research.jobs.schedule import run_jobs
from research.jobs.timetable import ProgressDisplay, Timetable
from research.jobs.work import Work
from textgames import install_command


@dataclass(frozen=True)
class Options:
    """How to do it. Nothing here changes the outcome."""

    source: str  # the recipe's name or file
    out: Path  # the folder
    processes: int  # jobs at a time
    dry_run: bool = False  # only say what would be done and how long it would take
    report_only: bool = False  # write the report of what is there, without doing any work
    json: bool = False  # print the report's JSON instead of the claims
    quiet: bool = False  # show no progress
    notes: tuple[str, ...] = ()  # sentences that the report begins with
    parts: tuple[str, ...] = ()  # of the experiment, if it has some; empty: all
    ship: Path | None = None  # only write the models that the package ships into this folder


@dataclass(frozen=True)
class Undertaking:
    """An experiment as its command sees it: what is to be done, by what, and what comes of it."""

    experiment: Any  # the settings, by which the folder is claimed and which every job is handed
    folder: Folder
    jobs: Sequence[Any]  # in the order of importance, done or not
    work: Mapping[str, Work]  # ``{kind: function}`` that does the jobs of a kind
    seconds: Mapping[str, float]  # ``{job: seconds}`` that they typically take
    report: Callable[[], int]  # writes and prints the report of what is there, and returns the exit code
    packages: tuple[str, ...]  # that the jobs import
    called: Callable[[Any], str] = lambda job: f"jobs {job.kind}"  # among what the plan counts a job
    threads: int | None = None  # of PyTorch in each job; without it the jobs at a time share the cores


def carry_out(undertaking: Undertaking, options: Options) -> int:
    """Do what the folder lacks and report, or only say what would be done; returns the exit code.

    Raises:
        UsageError: the folder belongs to something else, or a package is missing.
        JobFailedError: a job failed, and all that don't need it are done.
        KeyboardInterrupt: after Ctrl-C; the command that resumes has been printed.
    """
    folder, jobs = undertaking.folder, undertaking.jobs
    if not options.report_only:
        check_installed(*undertaking.packages)
    timetable = Timetable(undertaking.seconds, folder, jobs, options.processes)
    if options.dry_run:
        _say_plan(timetable, options, undertaking.called)
        return 0
    if options.report_only and not options.out.exists():
        raise UsageError(f"there is no {options.out} to report on: --out DIR names the folder of an experiment")
    folder.claim(undertaking.experiment)
    with FolderLock(options.out, StorageError):
        if not options.report_only:
            _work_on(undertaking, timetable, options)
        return undertaking.report()


def _work_on(undertaking: Undertaking, timetable: Timetable, options: Options) -> None:
    """Do the jobs that have no result, telling what it will take and, if stopped, how to resume."""
    if not timetable.left:
        say(f"all {len(timetable.jobs)} jobs are done already in {options.out}", options)
        return
    expected = duration(timetable.seconds_left())
    say(
        f"{len(timetable.left)} of {len(timetable.jobs)} jobs to do; this will take about {expected} with "
        f"{options.processes} process(es). Results go to {options.out}; Ctrl-C stops, the same command goes on.",
        options,
    )
    try:
        with kills_interrupt(), ProgressDisplay(timetable, quiet=options.quiet) as display:
            run_jobs(
                undertaking.experiment,
                undertaking.folder,
                undertaking.jobs,
                undertaking.work,
                options.processes,
                display,
                threads=undertaking.threads,
            )
    except KeyboardInterrupt:
        print(
            f"stopped; what is done is in {options.out}. To go on: the same command (--out {options.out})",
            file=sys.stderr,
        )
        raise


def _say_plan(timetable: Timetable, options: Options, called: Callable[[AnyJob], str]) -> None:
    left, seconds, wall = timetable.left, timetable.typical, timetable.seconds_left()
    if options.json:
        rows = [{"job": job.name, "needs": list(job.needs), "seconds": seconds[job.name]} for job in left]
        print(json.dumps({"dry_run": True, "seconds": wall, "processes": options.processes, "jobs": rows}))
        return
    for group in dict.fromkeys(called(job) for job in timetable.jobs.values()):
        own = [seconds[job.name] for job in left if called(job) == group]
        if own:
            print(f"{len(own):4} {group}, about {duration(sum(own))} of one process")
    print(f"about {duration(wall)} in all with {options.processes} process(es) on free cores; nothing was done")


def check_installed(*names: str) -> None:
    """Say at once which package is missing, and not after the first jobs.

    Raises:
        UsageError: one isn't there; the message has the command.
    """
    for name in names:
        if find_spec(name) is None:
            raise UsageError(f"this needs {name}, which is not installed: {install_command('train,plots')}")


def say(message: str, options: Options) -> None:
    """Tell on stderr, unless it is to be quiet."""
    if not options.quiet:
        print(message, file=sys.stderr, flush=True)
