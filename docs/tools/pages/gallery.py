"""The gallery of docs/games.md: every game with a moving picture, a sentence, and the headroom of its scenarios.

Pictures and sentences are those of the games' own pages. How far the two ends of a scale are apart is
docs/games/headroom.json, which is measured by ``python research/perf/headroom.py --json docs/games/headroom.json``.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pages import games
from pages.marks import remade
from textgames import SCENARIOS, SUITES

FILE = Path(__file__).parents[2] / "games.md"
HEADROOM = games.FOLDER / "headroom.json"


def files() -> Iterator[tuple[Path, str]]:
    """Yield the page."""
    yield FILE, remade(FILE.read_text(encoding="utf-8"), {"gallery": gallery})


def gallery() -> str:
    """Return the games by the suite of their first scenario that is in one, and how many scales are of which kind."""
    by_suite: dict[str, list[str]] = {suite: [] for suite in SUITES if suite not in ("all", "paper")}
    rest: list[str] = []
    for page in games.pages():
        suite = next((one for name in page.scenarios for one in by_suite if name in SUITES[one]), None)
        (by_suite[suite] if suite else rest).append(picture(page))
    parts = [f"### {title.capitalize()}\n\n" + "\n\n".join(shown) for title, shown in by_suite.items()]
    return "\n\n".join([*parts, "### In no suite\n\n" + "\n\n".join(rest), counts()])


def picture(page: games.GamePage) -> str:
    """Show one game."""
    heading, _, text = page.file.read_text(encoding="utf-8").partition("\n")
    title = heading.removeprefix("# ").partition(",")[0]
    sentence = re.split(r"(?<=\.)\s", text.strip().partition("\n\n")[0])[0]
    told = f"**[{title}](games/{page.name}.md).** {' '.join(sentence.split())}"
    shown = f"![{title}](games/pictures/{page.name}-good.svg)"
    rows = ", ".join(f"[{name}](games/{page.name}.md) {about(name)}" for name in page.scenarios)
    return "\n\n".join([told, shown, rows]).rstrip()


def about(name: str) -> str:
    """Return the headroom, with a mark if the reference can be beaten; or the number of players, who have no scale."""
    players = len(SCENARIOS[name].game().players)
    if players > 1:
        return f"({players} players)"
    return f"({headroom(name)}{'*' if games.kind(name) == 'reference' else ''})"


@cache
def apart() -> Mapping[str, Any]:
    """Return what ``research/perf/headroom.py`` has measured of the scenarios for one player."""
    measured: dict[str, Any] = json.loads(HEADROOM.read_text(encoding="utf-8"))
    return measured


def headroom(name: str) -> str:
    """Return the distance of the two ends of a scale, in standard errors of the mean of 50 episodes."""
    found = apart()[name]["headroom"]
    return "no noise" if found is None else f"{found:.1f}"


def counts() -> str:
    """Return the sentence that counts the scales of each kind."""
    kinds = Counter(games.kind(name) for name in SCENARIOS)
    return (
        f"In {kinds['optimal']} of the {len(SCENARIOS)} scenarios 1 is optimal play, in {kinds['reference']} a strong "
        f"player; {kinds['']} are for several players, without normalised scores."
    )
