"""What the instrument and the training study measured of a method of credit, from the stored report of the study."""

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

from pages.prose import table

FILE = Path(__file__).parents[3] / "research/credit/data/report.json.gz"

FIGURES = {
    "correlation": "correlation of the assigned with the true advantage, step by step",
    "mean_correlation": "the same without luck: averaged over what an action got in its state",
    "gradient_cosine": "cosine of one batch's gradient and the exact one",
}
"""In the order of the table; docs/research/credit/instrument.md explains them, and the report has the others."""


@cache
def report() -> dict[str, Any]:
    """Return the whole report."""
    found: dict[str, Any] = json.loads(gzip.decompress(FILE.read_bytes()))
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
