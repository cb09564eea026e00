"""The tables of docs/research/ladders.md: all ladders, and the levels of the players that ship.

The levels are in textgames/ladders, measured by ``python -m research.robustness.ladders.measure``; players' levels in
docs/research/ladders, by ``research.robustness.ladders.players``.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmark.show.board import level_figure
from pages.marks import remade
from pages.prose import table
from textgames import SCENARIOS, Scenario
from textgames.solving.blind import blind_play

FILE = Path(__file__).parents[2] / "research/ladders.md"
MEASURED = Path(__file__).parents[2] / "research/ladders"


def files() -> Iterator[tuple[Path, str]]:
    """Yield the page."""
    makers = {"ladders": ladders, "players": players}
    yield FILE, remade(FILE.read_text(encoding="utf-8"), makers)


def ladders() -> str:
    """Return a row for each ladder, from its first level to its last; the files of ladders have every level."""
    rows = []
    for name, one in SCENARIOS.items():
        if one.levels:
            rungs = [level.rung for level in one.levels if level.rung is not None]
            harder = ", ".join(key.replace("_", " ") for key in rungs[0].settings if _differs(key, one.levels))
            tolerances = " ".join(f"{rung.tolerance:.0%}".rstrip("%") for rung in rungs)
            optimum, blind = _ends([f"{rung.optimum:.2f}" for rung in rungs]), _ends(_blind(one.levels))
            depth = "" if rungs[0].depth is None else _ends([str(rung.depth) for rung in rungs])
            rows.append(
                [f"`{name}`", harder, tolerances, optimum, blind, _ends([f"{one.states:,}" for one in rungs]), depth]
            )
    return table(["ladder", "what gets harder", "tolerance by level, %", "optimum", "blind", "states", "depth"], rows)


def _ends(figures: Sequence[str]) -> str:
    return f"{figures[0]} to {figures[-1]}"


def _blind(levels: Sequence[Scenario]) -> list[str]:
    return [f"{play.value:.2f}" for level in levels if (play := blind_play(level)) is not None]


def _differs(setting: str, levels: Sequence[Scenario]) -> bool:
    """Return whether a setting tells levels apart, and isn't the number of rounds by another name."""
    values = [level.kwargs[setting] for level in levels]
    return any(value != values[0] for value in values) and values != [level.horizon for level in levels]


def players() -> str:
    """Return a row for each ladder, a column for each player."""
    measured = json.loads((MEASURED / "players.json").read_text(encoding="utf-8"))
    agents = list(dict.fromkeys(("random", "blind", "greedy", "planner", *(row["agent"] for row in measured))))
    rows = []
    for name in dict.fromkeys(row["scenario"] for row in measured):
        own = {row["agent"]: _level(row) for row in measured if row["scenario"] == name}
        rows.append([f"`{name}`", *(own.get(agent, "") for agent in agents)])
    return table(["ladder", *agents], rows)


def _level(row: dict[str, Any]) -> str:
    figure = level_figure(row)  # type: ignore[arg-type]
    return f"{figure.text} {figure.interval}".strip() if row["beyond"] is None else figure.text
