"""What the pages of the games say is what the shelf and the games have: scenarios, settings, observations."""

import ast
import inspect
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from textgames import SCENARIOS, SUITES, TSMG
from textgames.environments.rules import game_settings, load_game
from textgames.registry import settings_of

PAGES = {page.stem: page.read_text() for page in sorted((Path(__file__).parents[2] / "docs/games").glob("*.md"))}
OURS = [page for page in PAGES if page != "openspiel"]  # whose games take any setting of the library's

Row = dict[str, str]


def tables(text: str) -> Iterator[list[Row]]:
    """Every table of a page, as rows of ``{heading: cell}``."""
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        heading, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
        yield [dict(zip(heading, row, strict=True)) for row in rows]


def rows_with(text: str, *columns: str) -> list[Row]:
    return [row for table in tables(text) for row in table if set(columns) <= set(row)]


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def game_class(page: str) -> type[TSMG[Any]]:
    (env_id,) = set(re.findall(r"`(Text\w+-v\d)`", PAGES[page]))
    return load_game(settings_of(env_id)["game"])


def test_the_tables_of_scenarios_are_the_shelf() -> None:
    """Every scenario stands in one table, with its horizon, its first seed, its settings and its suites."""
    rows = [(page, row) for page, text in PAGES.items() for row in rows_with(text, "scenario", "first seed")]
    assert sorted(quoted(row["scenario"])[0] for _, row in rows) == sorted(SCENARIOS)
    for page, row in rows:
        scenario = SCENARIOS[quoted(row["scenario"])[0]]
        assert f"`{scenario.env_id}`" in PAGES[page]
        assert int(row["first seed"].replace(",", "")) == scenario.first_seed, scenario.name
        told = row.get("horizon", row.get("rounds"))
        assert told is not None, scenario.name
        assert int(told) == scenario.horizon, scenario.name
        for setting in quoted(row.get("settings", "")):
            name, value = re.split(r"\s*=\s*", setting)
            assert scenario.kwargs[name] == literal(value), (scenario.name, setting)
        if "suite" in row:
            suites = [suite for suite in SUITES if suite != "all" and scenario.name in SUITES[suite]]
            named = re.findall(rf"\b({'|'.join(SUITES)})\b", row["suite"])
            assert named == suites, scenario.name


def literal(text: str) -> Any:
    """A value as Python, TOML or prose write it."""
    text = text.strip("`")
    if re.fullmatch(r"\d+/\d+", text):
        return float(Fraction(text))
    plain = {"true": True, "false": False, "none": None}
    return plain[text.lower()] if text.lower() in plain else ast.literal_eval(text)


def defaults(page: str) -> Iterator[tuple[str, Any]]:
    """``(setting, default)`` of the page's table of settings; one row may have several of both."""
    for row in rows_with(PAGES[page], "setting", "default"):
        names = quoted(row["setting"])
        values = re.findall(r"`[^`]*`|[^,`\s][^,`]*", row["default"])
        yield from zip(names, [row["default"]] if len(names) == 1 else values, strict=True)


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
    shown = PAGES[page].split("## What a player reads")[1]
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
