"""What the reports of all experiments are made with: tables, numbers that JSON can hold, and the files themselves."""

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from benchmark.runs import write_atomically
from research.jobs.command import Options, say
from research.jobs.pictures import NO_MATPLOTLIB
from research.jobs.work import facts_of

PlotT = TypeVar("PlotT")

REPORT_MARKDOWN, REPORT_JSON = "report.md", "report.json"

Facts = Mapping[str, str]
"""Where and with what the report was made: commit and versions. They are shown as they are."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return some rows as a Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def clean(value: Any) -> Any:
    """Plain data with six significant digits, without NaN and infinity, which JSON doesn't have: they are ``None``."""
    if isinstance(value, Mapping):
        return {key: clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if isfinite(value) else None
    return value


def said_first(findings: Any, notes: Sequence[str], what: str) -> list[str]:
    """Return what a reader must know before the figures: which jobs of ``what`` have no result, and the notes."""
    some, more = ", ".join(findings.missing[:6]), len(findings.missing) - 6
    some += f" and {more} more" if more > 0 else ""
    missing = f"**This {what} is not complete.** {len(findings.missing)} jobs have no result: {some}."
    return [*([missing] if findings.missing else []), *(f"**Note.** {note}" for note in notes)]


def made_by(findings: Any, facts: Facts, made: str = "made") -> list[str]:
    """Return which code did the jobs, and with what the report was written: the first lines of how it was done."""
    lines = [f"- {made} with textbench {code}" for code in findings.code]
    return lines + [
        f"- {'report written with textbench' if name == 'textbench' else name}: {facts[name]}" for name in facts
    ]


def whole_report(
    figures: Mapping[str, Any], findings: Any, seconds: float, facts: Facts, notes: Sequence[str], settings: Any
) -> dict[str, Any]:
    """Return a report as plain JSON data: the figures, and then what is missing and what they were made with.

    ``findings`` has ``missing``, the names of the jobs without a result, and ``code``, the versions that did the jobs.
    """
    made = {"missing": list(findings.missing), "seconds": seconds, "notes": list(notes), "facts": dict(facts)}
    return dict(clean({**figures, **made, "code": list(findings.code), "settings": settings}))


def publish(
    findings: Any,
    folder: Path,
    options: Options,
    draw: Callable[[Any, Path], list[PlotT]],
    markdown: Callable[..., str],
    data: Callable[..., dict[str, Any]],
    jobs: int = 0,
) -> int:
    """Write Markdown, JSON and, with matplotlib, the pictures; print the JSON or where the report is.

    The report for people is ``markdown(findings, facts, plots=, notes=)``. ``jobs`` is how many there are, if that is
    to be said beside the missing ones. Returns the exit code: 1 if a job has no result.
    """
    facts, plots = facts_of(), list[PlotT]()
    if find_spec("matplotlib") is not None:
        plots = draw(findings, folder)
    else:
        say(f"no plots: {NO_MATPLOTLIB}", options)
    write_atomically(folder / REPORT_MARKDOWN, markdown(findings, facts, plots=plots, notes=options.notes))
    printed = compact(data(findings, facts, options.notes))
    write_atomically(folder / REPORT_JSON, printed)
    if options.json:
        print(printed, end="")
    else:
        print(f"the report: {folder / REPORT_MARKDOWN}")
    if findings.missing and not options.json:
        print(f"not complete: {len(findings.missing)}{f' of {jobs}' if jobs else ''} jobs have no result")
    return 1 if findings.missing else 0


def compact(data: dict[str, Any]) -> str:
    """Return a report as JSON of one record a line: an indented one had 80,000 lines."""
    parts = []
    for key, value in data.items():
        records = [json.dumps(one) for one in value] if isinstance(value, list) else []
        told = "[\n  " + ",\n  ".join(records) + "\n ]" if records else json.dumps(value)
        parts.append(f" {json.dumps(key)}: {told}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def stored_report(file: Path) -> dict[str, Any]:
    """Read a report's JSON, which is compressed if the file's name ends in ``.gz``."""
    data = file.read_bytes()
    found: dict[str, Any] = json.loads(gzip.decompress(data) if file.suffix == ".gz" else data)
    return found


def store_report(file: Path, data: dict[str, Any]) -> None:
    """Write a report's JSON as :func:`stored_report` reads it; the same data gives the same bytes."""
    text = compact(data).encode()
    file.write_bytes(gzip.compress(text, mtime=0) if file.suffix == ".gz" else text)
