"""The command ``textbench reproduce`` behind its options: claim a folder, estimate, work, report.

``experiment -> folder -> jobs -> results -> report``.
"""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from agents.common.clock import duration
from agents.common.interrupt import kills_interrupt
from benchmark.errors import UsageError
from benchmark.reproduce.claims import Claim
from benchmark.reproduce.display import ProgressDisplay
from benchmark.reproduce.jobs import Folder, jobs_of
from benchmark.reproduce.plots import NO_MATPLOTLIB, draw_plots
from benchmark.reproduce.report import claims_of, report_data, report_markdown
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
        check_installed("torch", "transformers", "tokenizers")
    return carry_out(
        Timetable(experiment, folder, jobs, options.processes),
        options,
        claim=lambda: folder.claim(experiment),
        work=lambda display: run_jobs(experiment, folder, jobs, options.processes, display),
        report=lambda: _report(experiment, folder, options),
        groups=[(job.kind, _KINDS[job.kind]) for job in jobs],
    )


_KINDS = {
    "pretrain": "bases to pretrain",
    "train": "training runs",
    "play": "agents to play the fresh episodes",
    "control": "controls",
}


def check_installed(*names: str) -> None:
    """Say at once which package is missing, and not after the first jobs.

    Raises:
        UsageError: one isn't there; the message has the command.
    """
    for name in names:
        if find_spec(name) is None:
            raise UsageError(f"this needs {name}, which is not installed: {install_command('train,plots')}")


def carry_out(
    timetable: Timetable,
    options: Options,
    *,
    claim: Callable[[], None],
    work: Callable[[ProgressDisplay], None],
    report: Callable[[], int],
    groups: Sequence[tuple[str, str]],
) -> int:
    """Claim the folder, do what it lacks and report, or only say what would be done; returns the exit code.

    Args:
        timetable: of all jobs, in their order.
        options: how to do it.
        claim: makes the folder this experiment's.
        work: does the jobs that have no result.
        report: writes and prints the report, and returns the exit code.
        groups: of every job, in their order, what the plan counts it among, and what it calls that.
    """
    if options.dry_run:
        _say_plan(timetable, options, groups)
        return 0
    claim()
    lock = FolderLock(options.out)
    try:
        if not options.report_only:
            work_on(timetable, options, work)
        return report()
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


def _say_plan(timetable: Timetable, options: Options, groups: Sequence[tuple[str, str]]) -> None:
    left, seconds, wall = timetable.left, timetable.typical, timetable.seconds_left()
    if options.json:
        rows = [{"job": job.name, "needs": list(job.needs), "seconds": seconds[job.name]} for job in left]
        print(json.dumps({"dry_run": True, "seconds": wall, "processes": options.processes, "jobs": rows}))
        return
    group_of = dict(zip(timetable.jobs, groups, strict=True))
    for group in dict.fromkeys(groups):
        own = [seconds[job.name] for job in left if group_of[job.name] == group]
        if own:
            print(f"{len(own):4} {group[1]}, about {duration(sum(own))} of one process")
    print(f"about {duration(wall)} in all with {options.processes} process(es); nothing was done")


def write_report(folder: Path, text: str, data: dict[str, Any]) -> str:
    """Write a report's Markdown and its JSON beside each other; returns the JSON."""
    write_atomically(folder / REPORT_MARKDOWN, text)
    printed = _compact(data)
    write_atomically(folder / REPORT_JSON, printed)
    return printed


def _compact(data: dict[str, Any]) -> str:
    """A report as JSON of one record a line: an indented one had 80,000 lines."""
    parts = []
    for key, value in data.items():
        records = [json.dumps(one) for one in value] if isinstance(value, list) else []
        told = "[\n  " + ",\n  ".join(records) + "\n ]" if records else json.dumps(value)
        parts.append(f" {json.dumps(key)}: {told}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


PlotT = TypeVar("PlotT")


def drawn(draw: Callable[[], list[PlotT]], options: Options) -> list[PlotT]:
    """A report's plots; none without matplotlib, which is said."""
    if find_spec("matplotlib") is not None:
        return draw()
    say(f"no plots: {NO_MATPLOTLIB}", options)
    return []


def _report(experiment: Experiment, folder: Folder, options: Options) -> int:
    """Write Markdown, JSON and, with matplotlib, the plots; print the JSON or the claims."""
    results, facts = read_reproduction(experiment, folder), facts_of()
    plots = drawn(lambda: draw_plots(results, experiment, folder.path), options)
    text = report_markdown(results, experiment, facts, plots=plots, notes=options.notes)
    data = write_report(folder.path, text, report_data(results, experiment, facts, options.notes))
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
            told = f"{finding.estimate:z.3f}"
            print(f"  {told:24} {needed}; {finding.verdict}: {finding.about} ({finding.samples})")
        print()
    if results.missing:
        print(f"not complete: {len(results.missing)} jobs have no result")


def say(message: str, options: Options) -> None:
    """Tell on stderr, unless it is to be quiet."""
    if not options.quiet:
        print(message, file=sys.stderr, flush=True)
