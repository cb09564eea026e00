"""The tables of pages that are written by hand otherwise, and the prompt on the page of players.

How fast the games are is measured by ``python research/perf/games.py --json docs/games/speeds.json``, levels of games
and of players by ``research.robustness.ladders`` (``measure``, ``players``), worst cases by ``robust --json``.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.loop.session import EpisodeSession
from benchmark.show.board import level_figure
from pages.marks import remade
from pages.prose import fenced, table
from textgames import SCENARIOS, Scenario
from textgames.solving.blind import blind_play

DOCS = Path(__file__).parents[2]
SPEEDS = DOCS / "games/speeds.json"
WORST_CASE = DOCS / "research/worst_case"


def files() -> Iterator[tuple[Path, str]]:
    """Yield the pages."""
    for page, makers in {
        "players": {"prompt": prompt},
        "research/ladders": {"ladders": ladders, "players": players},
        "research/speeds": {"speeds": speeds},
        "research/worst_case": {"worst": worst, "cliff": cliff},
    }.items():
        file = DOCS / f"{page}.md"
        yield file, remade(file.read_text(encoding="utf-8"), makers)


def prompt() -> str:
    """Return the one message of the third decision of the first episode, after two moves down."""
    scenario = SCENARIOS["frozen-lake"]
    session = EpisodeSession(scenario, scenario.first_seed, opponents=None)
    for _ in range(2):
        session.respond("<action>down</action>")
    (message,) = session.messages
    return fenced(message["content"])


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
    measured = json.loads((DOCS / "research/ladders/players.json").read_text(encoding="utf-8"))
    agents = list(dict.fromkeys(("random", "blind", "greedy", "planner", *(row["agent"] for row in measured))))
    rows = []
    for name in dict.fromkeys(row["scenario"] for row in measured):
        own = {row["agent"]: _level(row) for row in measured if row["scenario"] == name}
        rows.append([f"`{name}`", *(own.get(agent, "") for agent in agents)])
    return table(["ladder", *agents], rows)


def _level(row: dict[str, Any]) -> str:
    figure = level_figure(row)  # type: ignore[arg-type]
    return f"{figure.text} {figure.interval}".strip() if row["beyond"] is None else figure.text


def speeds() -> str:
    """Return the scenarios that have a peer, the fastest beside it first."""
    measured: dict[str, dict[str, Any]] = json.loads(SPEEDS.read_text(encoding="utf-8"))
    beside = sorted((one["ratio"], name, one) for name, one in measured.items() if one["peer"])
    rows = [
        [f"`{name}`", f"{one['steps_per_second']:,.0f}", f"{one['peer_steps_per_second']:,.0f}", f"{ratio:.2f}"]
        for ratio, name, one in reversed(beside)
    ]
    heads = ["scenario", "ours", "TextArena's", "ratio"]
    return table(heads, rows, numbers=heads[1:])


def worst() -> str:
    """Return a row for each game and ball."""
    rows = []
    for file in sorted(WORST_CASE.glob("worst-*.json")):
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
    for file in sorted(WORST_CASE.glob("cliff-*.json")):
        told = json.loads(file.read_text(encoding="utf-8"))
        prices = list(dict.fromkeys(row["price"] for row in told["rows"]))
        for temperature in dict.fromkeys(row["temperature"] for row in told["rows"]):
            own: list[dict[str, Any]] = [row for row in told["rows"] if row["temperature"] == temperature]
            name = f"soft, {temperature:g}" if temperature else "optimum"
            moved = [f"{row['moved']:.2g}, {abs(row['lost']):.3f}" for row in own]
            rows.append([f"`{told['scenario']}`", name, *moved])
    return table(["game", "policy", *(f"{price:g}" for price in prices)], rows)
