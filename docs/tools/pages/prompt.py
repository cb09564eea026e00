"""The prompt on docs/players.md: what a model is sent at a decision on the frozen lake, letter by letter."""

from collections.abc import Iterator
from pathlib import Path

from agents.loop.session import EpisodeSession
from pages.marks import remade
from pages.prose import fenced
from textgames import SCENARIOS

FILE = Path(__file__).parents[2] / "players.md"


def files() -> Iterator[tuple[Path, str]]:
    """Yield the page."""
    yield FILE, remade(FILE.read_text(encoding="utf-8"), {"prompt": prompt})


def prompt() -> str:
    """Return the one message of the third decision of the first episode, after two moves down."""
    scenario = SCENARIOS["frozen-lake"]
    session = EpisodeSession(scenario, scenario.first_seed, opponents=None)
    for _ in range(2):
        session.respond("<action>down</action>")
    (message,) = session.messages
    return fenced(message["content"])
