"""Read sources, remarks and costs of methods from docs/research/credit/methods.md."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).parents[2] / "research/credit/methods.md"

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
    (names,) = re.findall(r"^(`.*`) were not measured\.", FILE.read_text(encoding="utf-8"), re.MULTILINE)
    return set(re.findall(r"`(\w+)`", names))


def _table_rows() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield ``(heading of the section, {head of a column: cell})`` of every row of every table."""
    for section in re.split(r"^## ", FILE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        heading = section.splitlines()[0]
        for table in re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE):
            heads, _, *lines = [
                [cell.strip() for cell in line.strip().strip("|").split("|")] for line in table.splitlines()
            ]
            for line in lines:
                yield heading, dict(zip(heads, line, strict=True))
