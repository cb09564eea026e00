"""The command ``textbench reproduce`` behind its options: claim a folder, estimate, work, report.

``experiment -> folder -> jobs -> results -> report``.
"""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from agents.clock import duration
from agents.interrupt import kills_interrupt
from benchmark.errors import UsageError
from benchmark.reproduce.claims import Claim
from benchmark.reproduce.display import ProgressDisplay
from benchmark.reproduce.jobs import Folder, Job, jobs_of
from benchmark.reproduce.plots import NO_MATPLOTLIB, draw_plots
from benchmark.reproduce.report import claims_of, figure, report_data, report_markdown
from benchmark.reproduce.reproduction import Reproduction, read_reproduction
from benchmark.reproduce.schedule import run_jobs
from benchmark.reproduce.settings import Experiment
from benchmark.reproduce.timing import Timetable
from benchmark.reproduce.work import source_folder
from benchmark.runs.folder import write_atomically
from benchmark.runs.locking import FolderLock
from benchmark.runs.provenance import facts_of
from textgames.extras import install_command

REPORT_MARKDOWN, REPORT_JSON = "report.md", "report.json"


@dataclass(frozen=True)
class Options:
    """How to do it. Nothing here changes the outcome."""

    out: Path  # the folder
    processes: int  # jobs at a time
    dry_run: bool = False  # only say what would be done and how long it would take
    report_only: bool = False  # write the report of what is there, without doing any work
    json: bool = False  # print the report's JSON instead of the claims
    quiet: bool = False  # show no progress
    notes: tuple[str, ...] = ()  # sentences that the report begins with


def reproduce(experiment: Experiment, options: Options) -> int:
    """Do what the folder lacks, then write and print the report; returns the exit code.

    Raises:
        UsageError: the folder belongs to something else, or a package is missing.
        JobFailedError: a job failed.
        KeyboardInterrupt: after Ctrl-C; the command that goes on has been printed.
    """
    folder, jobs = Folder(options.out), jobs_of(experiment)
    if not options.report_only:  # what is missing is said now, not after the first jobs
        for base in experiment.bases.values():
            if base.source:
                source_folder(base.source)
        for name in ("torch", "transformers", "tokenizers"):
            if find_spec(name) is None:
                raise UsageError(f"reproducing needs {name}, which is not installed: {install_command('train,plots')}")
    if options.dry_run:
        _say_plan(experiment, folder, jobs, options)
        return 0
    folder.claim(experiment)
    lock = FolderLock(options.out)
    try:
        if not options.report_only:
            work_on(
                Timetable(experiment, folder, jobs, options.processes),
                options,
                lambda display: run_jobs(experiment, folder, jobs, options.processes, display),
            )
        return _report(experiment, folder, options)
    finally:
        lock.release()


def work_on(timetable: Timetable, options: Options, work: Callable[[ProgressDisplay], None]) -> None:
    """Do the jobs of a timetable that have no result, telling what it will take and, if stopped, how to go on."""
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
            work(display)
    except KeyboardInterrupt:
        print(
            f"stopped; what is done is in {options.out}. To go on: the same command (--out {options.out})",
            file=sys.stderr,
        )
        raise


def _say_plan(experiment: Experiment, folder: Folder, jobs: Sequence[Job], options: Options) -> None:
    timetable = Timetable(experiment, folder, jobs, options.processes)
    left, seconds, wall = timetable.left, timetable.typical, timetable.seconds_left()
    if options.json:
        rows = [{"job": job.name, "needs": list(job.needs), "seconds": seconds[job.name]} for job in left]
        print(json.dumps({"dry_run": True, "seconds": wall, "processes": options.processes, "jobs": rows}))
        return
    for kind, text in (
        ("pretrain", "bases to pretrain"),
        ("train", "training runs"),
        ("play", "agents to play the fresh episodes"),
        ("control", "controls"),
    ):
        group = [seconds[job.name] for job in left if job.kind == kind]
        if group:
            print(f"{len(group):4} {text}, about {duration(sum(group))} of one process")
    print(f"about {duration(wall)} in all with {options.processes} process(es); nothing was done")


def _report(experiment: Experiment, folder: Folder, options: Options) -> int:
    """Write Markdown, JSON and, with matplotlib, the plots; print the JSON or the claims."""
    results, facts = read_reproduction(experiment, folder), facts_of()
    plots: list[tuple[str, str]] = []
    if find_spec("matplotlib") is not None:
        plots = draw_plots(results, experiment, folder.path)
    else:
        say(f"no plots: {NO_MATPLOTLIB}", options)
    text = report_markdown(results, experiment, facts, plots=plots, notes=options.notes)
    write_atomically(folder.path / REPORT_MARKDOWN, text)
    data = json.dumps(report_data(results, experiment, facts, options.notes), indent=1) + "\n"
    write_atomically(folder.path / REPORT_JSON, data)
    if options.json:
        print(data, end="")
    else:
        _print_claims(claims_of(results, experiment), results)
        print(f"the whole report: {folder.path / REPORT_MARKDOWN}")
    return 1 if results.missing else 0


def _print_claims(claims: Sequence[Claim], results: Reproduction) -> None:
    for claim in claims:
        print(f"{claim.text}\n  {str(claim.verdict).upper()}")
        for finding in claim.findings:
            needed = f"needed: above {finding.threshold:g}"
            print(f"  {figure(finding.estimate):24} {needed}; {finding.verdict}: {finding.about} ({finding.samples})")
        print()
    if results.missing:
        print(f"not complete: {len(results.missing)} jobs have no result")


def say(message: str, options: Options) -> None:
    """Tell on stderr, unless it is to be quiet."""
    if not options.quiet:
        print(message, file=sys.stderr, flush=True)
