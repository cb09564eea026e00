"""Play that doesn't read: the best fixed distribution over actions, which is what a score of 0 means.

A blind player draws every action from one distribution over the names of actions, whatever it is shown: from its part
on the actions that are legal now, made to sum to 1, or from all legal ones with equal chances where it names none of
them. Uniform play is one of these, and so is every constant action. On the 4x4 lake uniform play succeeds in 0.3% of
episodes and "half right, half down" in 27%: a model that gets there has read nothing yet.

What such a player gets is computed, by the game's own chances, where the states within reach of a start are few enough
(:func:`blind_value`); elsewhere it is played. The best one of every scenario that ships is in a table
(``shelf/blind.json``, made by ``docs/tools/measure_blind.py``); for other games it is searched
(:mod:`textgames.solving.blind_search`).
"""

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textgames.cache import cache_folder, own_sources, read_cache, sources_digest, write_cache
from textgames.settings import taken_by
from textgames.solving.blind_search import search
from textgames.solving.fixed_policies import BlindPlay, FixedPolicy, blind_value, chances_of, policy_text
from textgames.tsmg import TSMG
from textgames.twins import Twin

if TYPE_CHECKING:
    from textgames.scenarios import Scenario

__all__ = ["BlindPlay", "FixedPolicy", "blind_play", "blind_play_of", "blind_value", "chances_of"]


def blind_play(scenario: "Scenario") -> BlindPlay | None:
    """The best blind player of a scenario; ``None`` where several players act from outside.

    It is looked up in the table that ships, where that has the game with these settings and this horizon. Else it is
    searched, which takes seconds, and kept in the user's cache folder.
    """
    return blind_play_of(scenario.game(), scenario.horizon)


def blind_play_of(game: TSMG[Any], horizon: int | None) -> BlindPlay | None:
    """:func:`blind_play` of a game and its horizon."""
    if len(game.players) != 1:
        return None
    if isinstance(game, Twin):  # blind play is the same, under other names
        own = blind_play_of(game.original, horizon)
        if own is None:
            return None
        policy = {game.twin_action(action): chance for action, chance in own.policy.items()}
        return own._replace(policy=policy, text=policy_text(policy))
    about = found_by(game, horizon)
    for row in shipped_rows().values():
        if about and row.items() >= about.items():
            return BlindPlay(**{name: row[name] for name in BlindPlay._fields})
    file = _cache_file(game, about) if about else None
    kept = read_cache(file, lambda data: BlindPlay(**data))
    if kept is None:
        kept = search(game, horizon)
        write_cache(file, kept._asdict())
    return kept


@cache
def shipped_rows() -> Mapping[str, Mapping[str, Any]]:
    """The table that ships, ``{scenario: row}``; a row has the game, its settings, the horizon, and the play."""
    text = files("textgames").joinpath("shelf/blind.json").read_text(encoding="utf-8")
    rows: Mapping[str, Mapping[str, Any]] = json.loads(text)
    return rows


def found_by(game: TSMG[Any], horizon: int | None) -> dict[str, Any]:
    """What a row of the table is found by, as JSON has it: the game, settings that aren't its defaults, the horizon.

    Empty for a game built by hand, whose settings nobody knows.
    """
    if game.made_with is None:
        return {}
    defaults = taken_by(type(game)).named
    settings = {name: value for name, value in game.made_with.items() if value != defaults[name].default}
    cls = f"{type(game).__module__}:{type(game).__qualname__}"
    about: dict[str, Any] = {"game": cls, "settings": settings, "horizon": horizon}
    try:
        about = json.loads(json.dumps(about))
    except TypeError:  # a setting that JSON doesn't have, such as a function
        return {}
    return about


def _cache_file(game: TSMG[Any], about: Mapping[str, Any]) -> Path | None:
    """The file for the play of a game that has no row, named by its settings and the source code that it depends on."""
    own = own_sources(type(game).__mro__)
    if own is None:
        return None
    ours = sources_digest(sorted(Path(str(files("textgames"))).rglob("*.py")))
    text = f"{ours} {sources_digest(own)} {json.dumps(about, sort_keys=True)}"
    return cache_folder() / f"blind-{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"
