"""The tables of all scenarios on docs/games.md: what players get there, and how fast they are beside a peer's.

Scores are those of the games' own pages. Speeds are docs/games/speeds.json, which is measured by
``python perf/games.py --json docs/games/speeds.json``.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
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

HEADROOM = games.FOLDER / "headroom.json"
TEXTS = ("scenario", "1 is", "how")
HEADS = [
    *("scenario", "players", "rounds", "1 is", "how", "blind play", "share", "headroom"),
    *(*AGENTS, "steps/s", "TextArena's steps/s (ours is)"),
]


def files() -> Iterator[tuple[Path, str]]:
    """The page."""
    yield FILE, remade(FILE.read_text(encoding="utf-8"), {"tables": tables})


def tables() -> str:
    """A table for each suite, of the scenarios that stand in none before it; and how many scales are of which kind."""
    speeds: dict[str, Any] = json.loads(SPEEDS.read_text(encoding="utf-8"))
    pages = {page.env_id: page.name for page in games.pages()}
    parts, shown = [], set[str]()
    for suite, names in {**SUITES, "in no suite": tuple(SCENARIOS)}.items():
        rows = [row(name, speeds.get(name, {}), pages) for name in names if name not in shown and suite != "all"]
        shown.update(names if suite != "all" else ())
        if rows:
            numbers = [head for head in HEADS if head not in TEXTS]
            parts.append(f"**{suite}**\n\n{table(HEADS, rows, numbers)}")
    return "\n\n".join([*parts, counts()])


def row(name: str, speed: Mapping[str, Any], pages: Mapping[str, str]) -> list[str]:
    """The cells of one scenario; empty where nothing was measured."""
    scenario, means = SCENARIOS[name], mean_returns(name)
    steps = f"{speed['steps_per_second']:,.0f}" if speed else ""
    peer = f"{speed['peer_steps_per_second']:,.0f} ({speed['ratio']:.2f} x)" if speed.get("peer") else ""
    link = f"[{name}](games/{pages[scenario.env_id]}.md)"
    about = [link, str(len(scenario.game().players)), str(scenario.horizon), kind(name), method(name)]
    return [*about, *headroom(name), *means, steps, peer]


@cache
def apart() -> Mapping[str, Any]:
    """What ``perf/headroom.py`` has measured of the scenarios for one player."""
    measured: dict[str, Any] = json.loads(HEADROOM.read_text(encoding="utf-8"))
    return measured


def mean_returns(name: str) -> list[str]:
    """Those of :data:`AGENTS`: of the episodes that tell the headroom, or on the games' pages where several play."""
    if name in apart():
        return [f"{apart()[name]['players'][agent]['mean_return']:.2f}" for agent in AGENTS]
    played = scores.measured().get(name, {"agents": {}})["agents"]
    return [f"{played[agent]['mean_return']['value']:.2f}" if agent in played else "" for agent in AGENTS]


def headroom(name: str) -> list[str]:
    """What blind play gets, its share of what the reference gets, and how far apart the two are in standard errors."""
    found = apart().get(name)
    if found is None:
        return ["", "", ""]
    errors = "no noise" if found["headroom"] is None else f"{found['headroom']:.1f}"
    return [f"{found['blind']['value']:.2f}", f"{found['share']:.2f}", errors]


def kind(name: str) -> str:
    """Of what kind the 1 of a scenario's scores is; of its yardstick where several play, who have no such scores."""
    game = SCENARIOS[name].game()
    known, player = find_yardstick(game), find_search_player(game)
    if len(game.players) == 1:
        return "" if player is None else player.kind
    return f"no scale; moves: {known.kind}" if known is not None else "no scale"


def method(name: str) -> str:
    """How that is known, and by which other exact figures players of a scenario are told apart."""
    game = SCENARIOS[name].game()
    known, player = find_yardstick(game), find_search_player(game)
    told = [] if player is None else [player.method]
    if known is not None and known.kind == "clairvoyant":
        told.append(f"clairvoyant bound: {known.method}")
    if len(game.players) == 2 and game.hidden_information and game.has_initial_outcomes:
        told.append("exact exploitability")
    metrics = game.metrics(game.initial_state(np.random.default_rng(0)), "player_0")
    if "external_regret" in metrics and (player is None or not player.exact):
        told.append("exact regret")
    return "; ".join(told) or "-"


def counts() -> str:
    """The sentence that counts the scales of each kind."""
    kinds = Counter(kind(name) for name in SCENARIOS)
    yardsticks = [find_yardstick(scenario.game()) for scenario in SCENARIOS.values()]
    bounds = sum(one is not None and one.kind == "clairvoyant" for one in yardsticks)
    others = kinds.total() - kinds["optimal"] - kinds["reference"]
    return (
        f"Of the {len(SCENARIOS)} scenarios, the 1 of scores is the optimum in {kinds['optimal']} and a reference "
        f"player in {kinds['reference']}; in the other {others} several players act, and scores aren't normalised. "
        f"In {bounds} a clairvoyant bound is known besides, which is never the 1."
    )
