"""Sources and costs of methods, from docs/research/credit/methods.md, and their figures, from the stored report."""

import gzip
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pages.prose import table

ROOT = Path(__file__).parents[3]
OVERVIEW = ROOT / "docs/research/credit/methods.md"
REPORT = ROOT / "research/credit/data/report.json.gz"

POINTS = {
    "Credit by episode: one advantage for all steps": "credit",
    "Credit by step": "credit",
    "Credit with a critic": "credit",
    "Surrogate losses": "surrogate",
    "Group filters and draws": "",  # its rows say
    "Normalisers": "normalizer",
    "Task samplers": "tasks",
    "Rewards": "reward",
}
"""``{heading: the point of the methods in its table}``."""


class Row(NamedTuple):
    """A method's row of a table: its source, and remarks."""

    source: str
    remarks: str


def rows() -> dict[tuple[str, str], Row]:
    """Return ``{(point, name): row}``; one row may be of several methods."""
    found: dict[tuple[str, str], Row] = {}
    for heading, cells in _table_rows():
        if heading in POINTS and "name" in cells:
            point = POINTS[heading] or cells["point"]
            for name in re.findall(r"`(\w+)`", cells["name"]):
                found[point, name] = Row(cells["source"], cells.get("remarks", ""))
    return found


def costs() -> tuple[dict[str, tuple[str, str]], tuple[str, str]]:
    """Return ``{method: (ratio to plain, what for)}`` of the table of costs, and the same of all that it doesn't
    name."""
    named: dict[str, tuple[str, str]] = {}
    rest = ("", "")
    for heading, cells in _table_rows():
        if heading == "What a method costs":
            names, ratios = re.findall(r"`([\w.]+)`", cells["method"]), cells["ratio to plain"].split(", ")
            if not names:
                rest = (cells["ratio to plain"], cells["what for"])
            for name, ratio in zip(names, ratios * (len(names) if len(ratios) == 1 else 1), strict=False):
                named[name] = (ratio, cells["what for"])
    return named, rest


def without_cost() -> set[str]:
    """Return the methods of credit of which the page says that their cost wasn't measured."""
    (names,) = re.findall(r"^(`.*`) were not measured\.", OVERVIEW.read_text(encoding="utf-8"), re.MULTILINE)
    return set(re.findall(r"`(\w+)`", names))


def _table_rows() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield ``(heading of the section, {head of a column: cell})`` of every row of every table."""
    for section in re.split(r"^## ", OVERVIEW.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        heading = section.splitlines()[0]
        for lines in re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE):
            heads, _, *cells = [
                [cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines.splitlines()
            ]
            for row in cells:
                yield heading, dict(zip(heads, row, strict=True))


FIGURES = {
    "correlation": "correlation of the assigned with the true advantage, step by step",
    "mean_correlation": "the same without luck: averaged over what an action got in its state",
    "gradient_cosine": "cosine of one batch's gradient and the exact one",
}
"""In the order of the table; docs/research/credit/instrument.md explains them, and the report has the others."""


@cache
def report() -> dict[str, Any]:
    """Return the whole report."""
    found: dict[str, Any] = json.loads(gzip.decompress(REPORT.read_bytes()))
    return found


def measured(method: str) -> str:
    """Return the section on a method of credit, as Markdown; empty if nothing was measured."""
    parts = [part for part in (_fidelity(method), _learning(method)) if part]
    return "\n\n".join(parts)


def _fidelity(method: str) -> str:
    rows = []
    for figure, said in FIGURES.items():
        one = next((row for row in report()["over_cells"][figure] if row["method"] == method), None)
        if one is not None:
            less = one["minus_plain"] and _interval(one["minus_plain"])
            rows.append([said, f"{one['mean']:.2f}", less or "", str(one["cells"])])
    if not rows:
        return ""
    heads = ["figure", "mean", "minus `msgrpo`", "games and stages"]
    return (
        "Under the instrument, which knows the exact advantage: means over games and stages of training, with the "
        "difference to the plain method, paired, and its 95% interval ([the report](../report.md)).\n\n"
        + table(heads, rows, numbers=heads[-3:])
    )


def _learning(method: str) -> str:
    """Return the arms of the training study that use a method's credit: those of its name, perhaps with a draw behind
    it."""
    rows = [
        [arm["game"], f"`{arm['arm']}`", _interval(arm["learning"]), _interval(arm["minus_plain"]), str(arm["runs"])]
        for arm in report()["arms"]
        if arm["arm"].split("-")[0] == method
    ]
    if not rows:
        return ""
    heads = ["game", "arm", "mean over the evaluations", "minus `msgrpo`", "runs"]
    return (
        "Trained from the same model at equal tokens, each arm at its own best learning rate, with 95% intervals over "
        "seeds ([how](../report.md#training-at-equal-tokens)).\n\n" + table(heads, rows, numbers=heads[-3:])
    )


def _interval(estimate: dict[str, float] | None) -> str:
    if not estimate:
        return ""
    return f"{estimate['value']:.2f} [{estimate['low']:.2f}, {estimate['high']:.2f}]"
