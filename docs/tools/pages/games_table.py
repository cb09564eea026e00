"""The tables of all scenarios on docs/games.md: what players get there, and how fast they are beside a peer's.

Scores are those of the games' own pages. Speeds are docs/games/speeds.json, which is measured by
``python perf/games.py --json docs/games/speeds.json``.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from agents.baselines.search import find_search_player
from pages import games, scores
from pages.marks import remade
from pages.prose import table
from textgames import SCENARIOS, SUITES, find_yardstick

FILE = Path(__file__).parents[2] / "games.md"
SPEEDS = games.FOLDER / "speeds.json"
AGENTS = ("random", "greedy", "planner")
"""The players that have played every scenario."""

TEXTS = ("scenario", "yardstick")
HEADS = ["scenario", "players", "rounds", "yardstick", *AGENTS, "steps/s", "TextArena's steps/s (ours is)"]


def files() -> Iterator[tuple[Path, str]]:
    """The page."""
    yield FILE, remade(FILE.read_text(encoding="utf-8"), {"tables": tables})


def tables() -> str:
    """A table for each suite, of the scenarios that stand in none before it."""
    speeds: dict[str, Any] = json.loads(SPEEDS.read_text(encoding="utf-8"))
    pages = {page.env_id: page.name for page in games.pages()}
    parts, shown = [], set()
    for suite, names in SUITES.items():
        rows = [row(name, speeds.get(name, {}), pages) for name in names if name not in shown]
        shown.update(names)
        if rows:
            numbers = [head for head in HEADS if head not in TEXTS]
            parts.append(f"**{suite}**\n\n{table(HEADS, rows, numbers)}")
    return "\n\n".join(parts)


def row(name: str, speed: Mapping[str, Any], pages: Mapping[str, str]) -> list[str]:
    """The cells of one scenario; empty where nothing was measured."""
    scenario, played = SCENARIOS[name], scores.measured()[name]["agents"]
    means = [f"{played[agent]['mean_return']['value']:.2f}" if agent in played else "" for agent in AGENTS]
    steps = f"{speed['steps_per_second']:,.0f}" if speed else ""
    peer = f"{speed['peer_steps_per_second']:,.0f} ({speed['ratio']:.2f} x)" if speed.get("peer") else ""
    link = f"[{name}](games/{pages[scenario.env_id]}.md)"
    return [link, str(len(scenario.game().players)), str(scenario.horizon), yardstick(name), *means, steps, peer]


def yardstick(name: str) -> str:
    """What play in a scenario is measured against, and whether that is exact."""
    game = SCENARIOS[name].game()
    known, player = find_yardstick(game), find_search_player(game)
    if player is not None and player.exact:
        return f"exact: {player.method}"
    told = []
    if known is not None and known.exact:
        told.append(f"exact: {known.method}")
    elif len(game.players) == 2 and game.hidden_information and game.has_initial_outcomes:
        told.append("exact: exploitability")
    elif any(
        "external_regret" in metric for metric in game.metrics(game.initial_state(np.random.default_rng(0)), "player_0")
    ):
        told.append("exact: regret")
    if player is not None:
        told.append(f"reference player: {player.method}")
    return "; ".join(told) or "-"
