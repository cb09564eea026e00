"""The pages of the games agree with the catalog and the games: scenarios, settings, observations."""

import ast
import inspect
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from textgames import SCENARIOS, TSMG
from textgames.environments.rules import game_settings, load_game
from textgames.registry import settings_of

PAGES = {page.stem: page.read_text() for page in sorted((Path(__file__).parents[2] / "docs/games").glob("*.md"))}
OURS = [page for page in PAGES if page != "openspiel"]  # whose games take any setting of the library's


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def game_class(page: str) -> type[TSMG[Any]]:
    (env_id,) = set(re.findall(r"`(Text\w+-v\d)`", PAGES[page]))
    return load_game(settings_of(env_id)["game"])


def test_the_lists_of_scenarios_are_the_catalog() -> None:
    """Every scenario stands in one list, with its horizon, its first seed and its settings."""
    line = re.compile(r"^- `([\w-]+)`(?: \((.*)\))?: (\d+) rounds, first seed ([\d,]+);", re.MULTILINE)
    found = [(page, *parts) for page, text in PAGES.items() for parts in line.findall(text)]
    assert sorted(name for _, name, *_ in found) == sorted(SCENARIOS)
    for page, name, settings, rounds, first_seed in found:
        scenario = SCENARIOS[name]
        assert f"`{scenario.env_id}`" in PAGES[page]
        assert int(first_seed.replace(",", "")) == scenario.first_seed, name
        assert int(rounds) == scenario.horizon, name
        for setting in quoted(settings):
            key, value = setting.split("=")
            assert scenario.kwargs[key] == literal(value), (name, setting)


def literal(text: str) -> Any:
    """A value as Python, TOML or prose write it."""
    text = text.strip("`")
    if re.fullmatch(r"\d+/\d+", text):
        return float(Fraction(text))
    plain = {"true": True, "false": False, "none": None}
    return plain[text.lower()] if text.lower() in plain else ast.literal_eval(text)


def defaults(page: str) -> Iterator[tuple[str, Any]]:
    """Yield ``(setting, default)`` of the page's list of settings; a line may have several of both."""
    for names, values in re.findall(r"^- (`\w+`(?:, `\w+`)*) \((`[^:]*`)\): (?!\d+ rounds)", PAGES[page], re.MULTILINE):
        yield from zip(quoted(names), quoted(values), strict=True)


@pytest.mark.parametrize("page", OURS)
def test_every_setting_is_told_with_its_default(page: str) -> None:
    cls = game_class(page)
    parameters = inspect.signature(cls).parameters
    for name, told in defaults(page):
        assert literal(told) == parameters[name].default, (name, told)
    untold = [name for name in game_settings(cls) if f"`{name}`" not in PAGES[page]]
    assert not untold, f"docs/games/{page}.md doesn't tell of {', '.join(untold)}"


# ---------------------------------------------------------------- observations


@pytest.mark.parametrize("page", [page for page in OURS if game_class(page)().reads_observations])
def test_an_observation_can_be_read_back(page: str) -> None:
    (scenario, *_) = [each for each in SCENARIOS.values() if f"`{each.name}`" in PAGES[page]]
    shown = PAGES[page].split("## Observation")[1]
    (observation, *_) = re.findall(r"^```text\n(.*?)\n```$", shown, re.MULTILINE | re.DOTALL)
    assert any(_reads_back(game, observation) for game in (scenario.game(), game_class(page)())), observation


def _reads_back(game: TSMG[Any], observation: str) -> bool:
    for player in game.players:
        try:
            if game.observe(game.read_observation(observation, player), player) == observation:
                return True
        except ValueError:
            pass
    return False
