"""The table of docs/research/speeds.md: how fast the games are beside TextArena's, from docs/games/speeds.json.

The file is measured by ``python research/perf/games.py --json docs/games/speeds.json``.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pages import games
from pages.marks import remade
from pages.prose import table

FILE = Path(__file__).parents[2] / "research/speeds.md"
SPEEDS = games.FOLDER / "speeds.json"


def files() -> Iterator[tuple[Path, str]]:
    """Yield the page."""
    yield FILE, remade(FILE.read_text(encoding="utf-8"), {"speeds": speeds})


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
