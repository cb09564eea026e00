"""What the reports of all experiments are made with: tables, numbers that JSON can hold, and the files themselves."""

import json
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from benchmark.runs.folder import write_atomically
from research.jobs.command import Options, say
from research.jobs.pictures import NO_MATPLOTLIB

REPORT_MARKDOWN, REPORT_JSON = "report.md", "report.json"

Facts = Mapping[str, str]
"""Where and with what the report was made: commit and versions. They are shown as they are."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Some rows as a Markdown table."""
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


def write_report(folder: Path, text: str, data: dict[str, Any]) -> str:
    """Write a report's Markdown and its JSON beside each other; returns the JSON."""
    write_atomically(folder / REPORT_MARKDOWN, text)
    printed = compact(data)
    write_atomically(folder / REPORT_JSON, printed)
    return printed


def publish(folder: Path, text: str, data: dict[str, Any], options: Options, missing: str = "") -> None:
    """Write a report, and print its JSON or where it is; ``missing`` says how many jobs have no result, if any."""
    printed = write_report(folder, text, data)
    if options.json:
        print(printed, end="")
        return
    print(f"the report: {folder / REPORT_MARKDOWN}")
    if missing:
        print(f"not complete: {missing} jobs have no result")


def compact(data: dict[str, Any]) -> str:
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
