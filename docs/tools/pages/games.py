"""The made parts of the games' pages: pictures of play, settings, scenarios, an observation, and scores.

A page's first line names the id of its game; what it is about, rules and sources are written by hand.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any, get_args

from agents.baselines.search import find_search_player
from pages import prose, scores
from pages.marks import remade
from pages.pictures.animation import pictures
from pages.pictures.playing import Play, good_and_bad, scenario_of
from textgames import SCENARIOS, find_yardstick, has_twins
from textgames.environments.rules import INVALID_ACTION, EpisodeRules, InvalidAction, load_game
from textgames.ladders import ladder_of
from textgames.registry import game_of, parallel_env, settings_of
from textgames.settings import taken_by

FOLDER = Path(__file__).parents[2] / "games"
PICTURES = FOLDER / "pictures"


@dataclass(frozen=True)
class Showing:
    """What is shown on a page.

    Attributes:
        scenario: which of its scenarios, or ``"textgames:Id-v0"`` of a game without one; the first one by default.
        text: whether to show what is read although there is a board.
        together: whether all players are the same agent; else the others play at random, in games of several.
    """

    scenario: str = ""
    text: bool = False
    together: bool = False


SHOWN = {
    "mastermind": Showing(text=True),
    "openspiel": Showing("textgames:OpenSpielDotsAndBoxes-v0"),
    "matrix-games": Showing("prisoners-dilemma-tft"),
    "cleanup": Showing(together=True),
    "werewolf": Showing("werewolf-5", together=True),
}
"""The pages that show something else than their first scenario, by its board, with the others at random."""


@dataclass(frozen=True)
class GamePage:
    """A page of a game, or of several.

    Attributes:
        name: of its file, without the suffix.
        env_id: the id of its game.
    """

    name: str
    env_id: str
    showing: Showing = field(default_factory=Showing)

    @property
    def file(self) -> Path:
        return FOLDER / f"{self.name}.md"

    @property
    def scenarios(self) -> list[str]:
        return [name for name, scenario in SCENARIOS.items() if scenario.env_id == self.env_id]

    @property
    def shown(self) -> str:
        """The scenario of pictures and observation; empty if the page has neither a scenario nor a choice."""
        return self.showing.scenario or next(iter(self.scenarios), "")

    def made(self) -> str:
        """Return the page's text with its made parts as they should be."""
        makers = {name: partial(part, self) for name, part in PARTS.items()}
        return remade(self.file.read_text(encoding="utf-8"), makers)


def pages() -> list[GamePage]:
    """Return the pages of the games that something is shown of."""
    found = []
    for file in sorted(FOLDER.glob("*.md")):
        (env_id,) = file.read_text(encoding="utf-8").splitlines()[0].split("`")[1::2]
        page = GamePage(file.stem, env_id, SHOWN.get(file.stem, Showing()))
        if page.shown:
            found.append(page)
    return found


def files() -> Iterator[tuple[Path, str]]:
    """Yield the pages and their pictures."""
    for page in pages():
        yield page.file, page.made()
        for name, drawing in drawings(page).items():
            yield PICTURES / name, drawing


# ---------------------------------------------------------------- pictures


@cache
def plays(page: GamePage) -> tuple[Play, Play]:
    """Return a good and a bad player from one start."""
    players = scenario_of(page.shown).game().players

    def seats(agent: str) -> Mapping[str, str]:
        others = dict.fromkeys(players[1:], agent if page.showing.together else "random")
        return {players[0]: agent, **others}

    return good_and_bad(page.shown, seats("planner"), seats("random"), page.showing.text)


def drawings(page: GamePage) -> dict[str, str]:
    """Return ``{file name: SVG}`` of a page."""
    titles = [("planner", method(page.shown)), ("random", "any legal action, with equal chances")]
    drawn = pictures(plays(page), titles)
    return {f"{page.name}-{which}.svg": svg for which, svg in zip(("good", "bad"), drawn, strict=True)}


def method(scenario: str) -> str:
    """Return how ``planner`` plays a scenario."""
    game = scenario_of(scenario).game()
    player, known = find_search_player(game), find_yardstick(game)
    if player is not None and player.exact:
        return f"optimal play: {player.method}"
    if known is not None and known.exact and player is None:
        return f"optimal play: {known.method}"
    return f"{player.method}" if player is not None else "fixed rules"


def picture_part(page: GamePage) -> str:
    """Show the two pictures with their players."""
    good, _ = plays(page)
    players = scenario_of(page.shown).game().players
    names = {}
    for which, agent in (("good", "planner"), ("bad", "random")):
        names[which] = f"![{agent}](pictures/{page.name}-{which}.svg)"
    told = f"`{page.shown}`, seed {good.seed:,}"
    if len(players) > 1 and page.showing.together:
        told += f", each in all {len(players)} seats"
    elif len(players) > 1:
        told += ", against random play"
    return f"{names['good']} {names['bad']}\n\n*{told}.*"


# ---------------------------------------------------------------- settings


def settings_part(page: GamePage) -> str:
    """List every setting of the game's class with its default, and its meaning from the docstring."""
    cls = load_game(settings_of(page.env_id)["game"])
    defaults = {name: default(parameter.default) for name, parameter in taken_by(cls).named.items()}
    return "\n".join(
        f"- {', '.join(f'`{name}`' for name in names)} ({', '.join(defaults[name] for name in names)}): {about}"
        for names, about in told_together(prose.arguments(cls), list(defaults))
    )


def environment_part(page: GamePage) -> str:
    """List what the game's environments take besides, each with its default first: the reference says what it means."""
    registered, game, kept = settings_of(page.env_id), game_of(page.env_id), parallel_env(page.env_id).rules
    ladder, modes = ladder_of(load_game(registered["game"])), [INVALID_ACTION]
    for mode in get_args(InvalidAction):
        with suppress(ValueError):
            EpisodeRules.checked(game, kept.max_steps, 0.0, mode)
            modes += [mode] if mode != INVALID_ACTION else []
    limit = registered.get("max_steps")
    told = [f"`max_steps={limit!r}`" if limit == kept.max_steps else f"`max_steps={limit!r}` ({kept.max_steps})"]
    told += [f"`level=0..{len(ladder.levels)}`"] if ladder else []
    told += ["`twin=0..`"] if has_twins(game) else []
    told += [f"`invalid_action={'|'.join(map(repr, modes))}`"]
    return f"[Environment](../reference/game.md#settings-of-environments): {', '.join(told)}.".replace("'", '"')


def told_together(about: Mapping[str, str], names: list[str]) -> list[tuple[list[str], str]]:
    """Return ``[(settings, what is said of them)]``: a docstring may tell of several in one sentence, "``b`` likewise".

    Raises:
        ValueError: a setting of which nothing is said.
    """
    own = {name: text for name, text in about.items() if name in names and not text.startswith("see `")}
    together = {name: [name] for name in own}
    for name in names:
        if name not in own:
            teller = next((other for other, text in own.items() if f"`{name}`" in text), None)
            if teller is None:
                raise ValueError(f"the docstring says nothing of the setting {name!r}")
            together[teller].append(name)
    return [(together[name], text) for name, text in own.items()]


def default(value: Any) -> str:
    """Return a default as one would write it."""
    if isinstance(value, float):
        share = Fraction(value).limit_denominator(12)
        if float(share) == value and len(repr(value)) > 6:
            return f"`{share}`"
    return f"`{value!r}`".replace("'", '"')


# ---------------------------------------------------------------- an observation


def observation_part(page: GamePage) -> str:
    """Return what is read at the third decision of the good player's episode, or at its last one."""
    viewer = scenario_of(page.shown).game().players[0]
    read = [step.observation for step in plays(page)[0].episode.steps if step.player == viewer]
    return prose.fenced(read[min(2, len(read) - 1)])


# ---------------------------------------------------------------- scenarios


def scenarios_part(page: GamePage) -> str:
    """List the page's scenarios: settings that differ from the defaults, rounds, and what a score of 1 is."""
    usual = taken_by(load_game(settings_of(page.env_id)["game"])).named
    lines = []
    for name in page.scenarios:
        scenario = SCENARIOS[name]
        changed = {key: value for key, value in scenario.kwargs.items() if usual[key].default != value}
        kwargs = ", ".join(default(value).replace("`", f"`{key}=", 1) for key, value in changed.items())
        told = f"{scenario.horizon} rounds; {scale(name)}."
        lines.append(f"- `{name}`{f' ({kwargs})' if kwargs else ''}: {told}")
    return "\n".join(lines)


def kind(name: str) -> str:
    """Return the kind of the 1 of a scenario's scores; empty in games of several players, which have no such scores."""
    game = SCENARIOS[name].game()
    player = find_search_player(game)
    return "" if len(game.players) > 1 or player is None else player.kind


def scale(name: str) -> str:
    """Return what 1 is and how it is known; if several play, what their moves can be held against."""
    game = SCENARIOS[name].game()
    known, player = find_yardstick(game), find_search_player(game)
    told = "" if player is None else player.method
    if kind(name):
        return f"{kind(name)}: {told}"
    if known is not None and known.kind == "optimal":
        return f"no scale; exact value of every move: {told or known.method}"
    exploitable = len(game.players) == 2 and game.hidden_information and game.has_initial_outcomes
    return "no scale" + ("; exact exploitability" if exploitable else "") + (f"; `planner`: {told}" if told else "")


# ---------------------------------------------------------------- scores


def scores_part(page: GamePage) -> str:
    """Show the scores of players without a model, in every scenario of the page."""
    return scores.score_table(page.scenarios)


PARTS = {
    "picture": picture_part,
    "settings": settings_part,
    "environment": environment_part,
    "observation": observation_part,
    "scenarios": scenarios_part,
    "scores": scores_part,
}
"""The parts that a page may have, by the names of their marks."""
