"""The tables of docs/research/papers.md, from docs/research/papers.toml, which says what a row holds."""

import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pages import measurements
from pages.marks import remade
from pages.prose import table

FILE = Path(__file__).parents[2] / "research/papers.md"
LEARNS = "tests/agents/msgrpo/test_methods_learn.py::test_it_learns"
VERDICTS = ("works", "partial", "missing", "outside")


def files() -> Iterator[tuple[Path, str]]:
    """Yield the page."""
    yield FILE, remade(FILE.read_text(encoding="utf-8"), {"papers": papers, "symbols": symbols})


def data() -> dict[str, dict[str, Any]]:
    """Return the file: its ``parts`` and ``symbols``, and the rows of each part by name."""
    return tomllib.loads(FILE.with_suffix(".toml").read_text(encoding="utf-8"))


def rows() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield ``(part, name, row)`` of every paper; what follows from its method is filled in."""
    found = data()
    for part in found["parts"]:
        for name, row in found[part].items():
            point, _, method = row.get("method", "").partition(".")
            if method:
                row = {"here": f"`{method}`", "test": f"{LEARNS}[{point}-{method}]"} | row
                if point == "credit":
                    row = {"figure": _cosine(method)} | row
            yield part, name, {"verdict": "works", "here": "", "figure": ""} | row


def papers() -> str:
    """Return the count of verdicts and a table for each part."""
    found = [*rows()]
    counted = Counter(row["verdict"] for _, _, row in found)
    told = ", ".join(f"{counted[verdict]} {verdict}" for verdict in VERDICTS)
    sections = [f"{len(found)} papers: {told}."]
    for part, title in data()["parts"].items():
        lines = [
            [_linked(name, row["id"]), row["does"], row["here"], row["figure"], _verdict(row)]
            for own, name, row in found
            if own == part
        ]
        sections += [f"## {title}", table(["paper", "its system", "here", "figure", "verdict"], lines)]
    return "\n\n".join(sections)


def symbols() -> str:
    """Return the table of the paper's symbols."""
    lines = [
        [f"`{symbol}`", said, f"`{place.replace(':', '.')}`"] for symbol, (said, place) in data()["symbols"].items()
    ]
    return table(["symbol", "what it is", "here"], lines)


def _linked(name: str, source: str) -> str:
    return f"[{name}](https://{source})" if "/" in source else f"[{name}](https://arxiv.org/abs/{source}) {source}"


def _verdict(row: dict[str, Any]) -> str:
    file = row.get("test", "").partition("::")[0]
    said = f"[{row['verdict']}](../../{file})" if file else row["verdict"]
    return f"{said}: {row['lacks']}" if "lacks" in row else said


def _cosine(method: str) -> str:
    found = [row for row in measurements.report()["over_cells"]["gradient_cosine"] if row["method"] == method]
    less = found[0]["minus_plain"] if found and method != "msgrpo" else None
    return f"{less['value']:.2f} [{less['low']:.2f}, {less['high']:.2f}]" if less else ""
