"""Writes the table of all games into docs/games.md.

    python perf/games.py --json speeds.json
    textbench run --suite all --episodes 50 --out runs/all --json > scores.json
    python docs/game_table.py speeds.json scores.json

The first two measure, this only puts together what they say.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from agents.baselines.search import find_search_player
from textgames import SCENARIOS, SUITES, TSMG, find_yardstick

FOLDER = Path(__file__).parent
BEGIN, END = "<!-- tables -->\n", "<!-- end of tables -->\n"
AGENTS = ("random", "planner", "tiny")


def pages() -> dict[str, str]:
    """``{environment id: page}``: a page's first line names the ids of its games."""
    return {
        name: f"games/{page.name}"
        for page in sorted((FOLDER / "games").glob("*.md"))
        for name in page.read_text(encoding="utf-8").splitlines()[0].split("`")[1::2]
    }


def yardstick(name: str) -> str:
    """What play in a scenario is measured against, and whether that is exact."""
    game = SCENARIOS[name].game()
    known, player = find_yardstick(game), find_search_player(game)
    if player is not None and player.exact:
        return f"exact: {player.method}"
    told = []
    if known is not None and known.exact:
        told.append(f"exact: {known.method}")
    elif (
        len(game.players) == 2 and game.hidden_information and type(game).initial_outcomes is not TSMG.initial_outcomes
    ):
        told.append("exact: exploitability")
    elif any(
        "external_regret" in metric for metric in game.metrics(game.initial_state(np.random.default_rng(0)), "player_0")
    ):
        told.append("exact: regret")
    if player is not None:
        told.append(f"reference player: {player.method}")
    return "; ".join(told) or "-"


def row(name: str, speeds: dict[str, Any], scores: dict[tuple[str, str], Any], page: dict[str, str]) -> list[str]:
    """The cells of one scenario; empty where nothing was measured."""
    scenario = SCENARIOS[name]
    speed = speeds.get(name, {})
    peer = f"{speed['peer_steps_per_second']:,.0f} ({speed['ratio']:.2f} x)" if speed.get("peer") else ""
    means = []
    for agent in AGENTS:
        score = scores.get((agent, name))
        mean = score["mean_return"] if score else None
        means.append("" if mean is None else f"{mean['value']:.2f}")
    link = f"[{name}]({page[scenario.env_id]})" if scenario.env_id in page else name
    steps = f"{speed['steps_per_second']:,.0f}" if speed else ""
    return [link, str(len(scenario.game().players)), str(scenario.horizon), yardstick(name), *means, steps, peer]


def main(speeds_file: str, scores_file: str) -> int:
    """Put the tables of all suites between the two marks in docs/games.md."""
    speeds = json.loads(Path(speeds_file).read_text())
    scores = {
        (score["agent"], score["scenario"]): score for score in json.loads(Path(scores_file).read_text())["scores"]
    }
    heads = ["scenario", "players", "rounds", "yardstick", *AGENTS, "steps/s", "TextArena's steps/s (ours is)"]
    lines, page, shown = [], pages(), set()
    for suite, names in SUITES.items():
        mine = [name for name in names if name not in shown]
        if not mine:
            continue
        shown.update(mine)
        lines += [
            f"**{suite}**",
            "",
            "| " + " | ".join(heads) + " |",
            "|" + " :-- |" + " --: |" * 2 + " :-- |" + " --: |" * 5,
        ]
        lines += ["| " + " | ".join(row(name, speeds, scores, page)) + " |" for name in mine] + [""]
    target = FOLDER / "games.md"
    before, _, rest = target.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    target.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"{END}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
