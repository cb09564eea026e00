"""What the players that ship get in each scenario: ``docs/games/scores.json``, which is measured, and its tables.

``docs/tools/measure_scores.py`` writes the file, of documents that ``textbench leaderboard --json`` printed.
"""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pages.prose import table
from textgames import SCENARIOS

FILE = Path(__file__).parents[2] / "games/scores.json"

AGENTS = ("planner", "greedy", "random")
"""In the order of the tables. ``blind`` is computed, in a row of its own, and models are on the leaderboard."""


MOST_COLUMNS = 4
"""Scenarios that stand beside each other; more of them stand below each other."""


def collected(documents: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return ``{scenario: {"agents": {agent: score}, "blind": 0, "reference": 1}}``; of two scores the first one
    counts."""
    found: dict[str, Any] = {}
    for document in documents:
        for score in document["scores"]:
            if score["mean_return"] is None:
                continue
            cell = found.setdefault(
                score["scenario"], {"blind": score["blind"], "reference": score["reference"], "agents": {}}
            )
            kept = {key: _rounded(score[key]) for key in ("mean_return", "success_rate", "invalid_rate")}
            cell["agents"].setdefault(score["agent"], {"episodes": score["episodes"], **kept})
    return {name: found[name] for name in SCENARIOS if name in found}


def _rounded(estimate: Mapping[str, float | None] | None) -> dict[str, float | None] | None:
    return estimate and {end: None if value is None else round(value, 6) for end, value in estimate.items()}


@cache
def measured() -> dict[str, Any]:
    """Return the file's content."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def score_table(names: list[str]) -> str:
    """Write the scores of players by scenarios, with those of optimal play and of ``blind``."""
    scores = measured()
    names = [name for name in names if name in scores]  # a scenario that is new has none
    cells = {name: scores[name]["agents"] for name in names}
    rows = [[f"`{agent}`", *(_cell(name, cells[name].get(agent)) for name in names)] for agent in AGENTS]
    rows = [row for row in rows if any(row[1:])]
    for said, values in (
        ("optimal", [_optimal(scores[name]["reference"]) for name in names]),
        ("`blind`", [_blind(scores[name]["blind"]) for name in names]),
    ):
        if any(values):
            rows.append([said, *values])
    counts = {one["episodes"] for name in names for one in cells[name].values()}
    episodes = "-".join(f"{count:,}" for count in sorted({min(counts), max(counts)}))
    if len(names) == 1:
        return "\n".join([f"{episodes} episodes:\n", *(f"- {player}: {score}" for player, score in rows)])
    heads = [f"{episodes} episodes", *(f"`{name}`" for name in names)]
    if len(names) > MOST_COLUMNS:
        heads, *rows = [list(column) for column in zip(heads, *rows, strict=True)]
    return table(heads, rows, numbers=heads[1:])


def _cell(name: str, score: Mapping[str, Any] | None) -> str:
    """Write ``-0.34 [-0.54, -0.10], 40%``; the share of successes if the game counts any."""
    if score is None:
        return ""
    value, low, high = (score["mean_return"][end] for end in ("value", "low", "high"))
    interval = "" if low is None else f" [{low:.2f}, {high:.2f}]"
    counts = bool(SCENARIOS[name].game().success_means)
    return f"{value:.2f}{interval}" + (f", {score['success_rate']['value']:.0%}" if counts else "")


def _optimal(reference: Mapping[str, Any]) -> str:
    """Return the exact mean over the same episodes, or nothing."""
    return f"{reference['value']:.2f}" if reference["kind"] == "optimal" else ""


def _blind(blind: Mapping[str, Any]) -> str:
    """Return ``0.27 (down 0.5, right 0.5)``."""
    return "" if blind["value"] is None else f"{blind['value']:.2f} ({blind['policy']})"
