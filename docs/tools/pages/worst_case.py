"""The tables of docs/research/worst_case.md, from what ``textbench robust ... --json`` computed."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pages.marks import remade
from pages.prose import table

FILE = Path(__file__).parents[2] / "research/worst_case.md"
DATA = Path(__file__).parents[2] / "research/worst_case"


def files() -> Iterator[tuple[Path, str]]:
    """Yield the page."""
    yield FILE, remade(FILE.read_text(encoding="utf-8"), {"worst": worst, "cliff": cliff})


def worst() -> str:
    """Return a row for each game and ball."""
    rows = []
    for file in sorted(DATA.glob("worst-*.json")):
        told = json.loads(file.read_text(encoding="utf-8"))
        game = "8x8, 90% firm" if told["set"] else "`frozen-lake-slippery`"
        for row in told["rows"]:
            figures = [_figure(row[name]) for name in ("nominal", "gain", "dr_rpo_gain", "price", "dr_rpo_price")]
            rows.append([game, str(told["starts"]), row["ball"], f"{row['radius']:g}", *figures])
    head = ("lake", "starts", "ball", "radius", "best by the rules", "robust gains", "DR-RPO gains", "robust pays")
    return table([*head, "DR-RPO pays"], rows)


def _figure(one: Mapping[str, float]) -> str:
    value, low, high = (f"{one[name]:.3f}".replace("-0.000", "0.000") for name in ("value", "low", "high"))
    return f"{value} [{low}, {high}]" if low != high else value


def cliff() -> str:
    """Return a row for each game and temperature, a column for each price."""
    rows: list[list[str]] = []
    prices: list[float] = []
    for file in sorted(DATA.glob("cliff-*.json")):
        told = json.loads(file.read_text(encoding="utf-8"))
        prices = list(dict.fromkeys(row["price"] for row in told["rows"]))
        for temperature in dict.fromkeys(row["temperature"] for row in told["rows"]):
            own: list[dict[str, Any]] = [row for row in told["rows"] if row["temperature"] == temperature]
            name = f"soft, {temperature:g}" if temperature else "optimum"
            moved = [f"{row['moved']:.2g}, {abs(row['lost']):.3f}" for row in own]
            rows.append([f"`{told['scenario']}`", name, *moved])
    return table(["game", "policy", *(f"{price:g}" for price in prices)], rows)
