"""The tables of docs/ladders.md: all ladders, the levels of the players that ship, and what the staircase takes.

The levels are in textgames/ladders, measured by ``python -m research.ladders.measure``; players' levels and the
simulations in docs/ladders, by ``research.ladders.players`` and ``research.ladders.staircase``.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmark.show.text_tables import level_figure
from pages.marks import remade
from pages.prose import table
from textgames import SCENARIOS, Scenario
from textgames.solving.blind import blind_play

FILE = Path(__file__).parents[2] / "ladders.md"
MEASURED = Path(__file__).parents[2] / "ladders"


def files() -> Iterator[tuple[Path, str]]:
    """The page."""
    makers = {"ladders": ladders, "players": players, "staircase": staircase}
    yield FILE, remade(FILE.read_text(encoding="utf-8"), makers)


def ladders() -> str:
    """A table for each ladder."""
    return "\n\n".join(f"**`{name}`**\n\n{_ladder(name)}" for name, one in SCENARIOS.items() if one.levels)


def _ladder(name: str) -> str:
    rows = []
    levels = SCENARIOS[name].levels
    for scenario in levels:
        rung, play = scenario.rung, blind_play(scenario)
        assert rung is not None
        assert play is not None
        wanted = {key: value for key, value in rung.settings.items() if value is not False and _differs(key, levels)}
        told = ", ".join(key if value is True else f"{key} {value}" for key, value in wanted.items())
        figures = [f"{rung.tolerance:.0%}", f"{rung.optimum:.2f}", f"{play.value:.2f}", f"{rung.states:,}"]
        depth = "" if rung.depth is None else str(rung.depth)
        rows.append([str(scenario.level_number), told, str(rung.horizon), *figures, depth])
    heads = ["level", "settings", "rounds", "tolerance", "optimum", "blind", "states", "depth"]
    if not any(row[-1] for row in rows):
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    return table(heads, rows, numbers=[head for head in heads if head != "settings"])


def _differs(setting: str, levels: Sequence[Scenario]) -> bool:
    """Whether a setting tells levels apart, and isn't the number of rounds by another name."""
    values = [level.kwargs[setting] for level in levels]
    return any(value != values[0] for value in values) and values != [level.horizon for level in levels]


def players() -> str:
    """A row for each ladder, a column for each player."""
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


def staircase() -> str:
    """Bias, error and coverage of the staircase; beside it the error of playing every level."""
    measured = json.loads((MEASURED / "staircase.json").read_text(encoding="utf-8"))
    rows = []
    for row in measured["rows"]:
        for episodes in ("50", "100"):
            near, even = (row["episodes"][episodes][way] for way in ("staircase", "every_level"))
            first = [row["player"], f"{row['level']:.1f}"] if episodes == "50" else ["", ""]
            errors = [f"{near['error']:.2f}", f"{near['coverage']:.0%}", f"{even['error']:.2f}"]
            rows.append([*first, episodes, f"{near['bias']:+.2f}", *errors])
    heads = ["player", "level", "episodes", "bias", "error", "interval holds it", "error of every level"]
    return table(heads, rows, numbers=heads[1:])
