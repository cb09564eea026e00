"""What every environment adds to a game: the horizon, the format penalty, and what an unreadable response does."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pkgutil import resolve_name
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from textgames.ladders import Level, ladder_of
from textgames.names import did_you_mean
from textgames.settings import check_number, check_one_of, check_switch, check_whole, taken_by
from textgames.tsmg import TSMG
from textgames.twins.twin import twin_of

ENVIRONMENT_SETTINGS = (
    "max_steps", "format_penalty", "invalid_action", "render_mode", "render_view", "seat", "opponents"
)  # fmt: skip
"""The settings of environments that are not their game's."""

_ARGUMENTS = ("max_cycles", "max_episode_steps", "num_envs", "autoreset_mode", "game", "id")

TWIN = "twin"
"""The setting that every game has: which of its twins is played (:mod:`textgames.twins`), 0 for the game itself."""

LEVEL = "level"
"""Likewise: which level of its ladder (:mod:`textgames.ladders`), 0 for none; it stands for settings and a horizon."""

ONE_SEAT_SETTINGS = ("seat", "opponents")  # of environments for one player alone

# of the environments of all players
ALL_SEATS_SETTINGS = (*(name for name in ENVIRONMENT_SETTINGS if name not in ONE_SEAT_SETTINGS), "max_cycles")

InvalidAction = Literal["default", "random", "noop", "terminate", "forfeit"]
"""What an unreadable response does: the first action, a random one, the game's no-op; or it ends the player's episode,
which pays nothing more (``terminate``) or what a loss pays (``forfeit``).
"""


MaxSteps = int | Literal["auto"] | None
"""After how many rounds an episode is truncated; ``"auto"``: the game's :attr:`~textgames.tsmg.TSMG.usual_limit`."""


INVALID_ACTION = "random"
"""What an unreadable response does unless a user chooses, here and in ``textbench run``."""

_CONSEQUENCES: Mapping[str, str] = {
    "default": "the first legal action was executed",
    "random": "a random legal action was executed",
    "noop": "the action that does nothing was executed",
    "terminate": "the episode was ended",
    "forfeit": "the episode was ended, and pays what a loss pays",
}


class EpisodeRules(NamedTuple):
    """The settings of an environment that are not the game's; see :class:`textgames.environments.solo.TextGameEnv`."""

    max_steps: int | None
    format_penalty: float
    invalid_action: InvalidAction

    @classmethod
    def checked(
        cls, game: TSMG[Any], max_steps: int | None, format_penalty: float, invalid_action: str
    ) -> "EpisodeRules":
        """Build the rules from what a user wrote; a ValueError names a wrong value, and what is accepted."""
        whole = isinstance(max_steps, int | np.integer) and not isinstance(max_steps, bool)
        if max_steps is not None and not (whole and max_steps >= 1):
            raise ValueError(f"max_steps must be a whole number of at least 1, or None for no limit, got {max_steps!r}")
        limit = None if max_steps is None else int(max_steps)
        fewest, what = game.shortest_win, f"{type(game).__name__} with {dict(game.made_with or {})}"
        if fewest == float("inf"):
            raise ValueError(f"{what} can't be won: no way leads to the goal, from some start at least")
        if limit is not None and fewest is not None and fewest > limit:
            raise ValueError(
                f"max_steps={limit} ends every episode of {what} too early: a win takes {fewest} rounds; accepted: at "
                f"least {fewest}, or no max_steps at all"
            )
        check_number("format_penalty", format_penalty, 0, float("inf"))
        check_one_of("invalid_action", invalid_action, get_args(InvalidAction))
        if invalid_action == "noop" and game.noop is None:
            raise ValueError(
                f"invalid_action='noop' needs a game with an action that does nothing; {type(game).__name__} has none; "
                "accepted for it: default, random, terminate, forfeit"
            )
        if invalid_action == "forfeit":
            try:  # said now, and not when the first response can't be read
                first = game.initial_state(np.random.default_rng(0))
                game.forfeit(first, game.players[0], float("inf") if limit is None else limit)
            except NotImplementedError as error:
                raise ValueError(f"invalid_action='forfeit' can't be used: {error}") from None
        return cls(limit, float(format_penalty), invalid_action)  # type: ignore[arg-type]

    @property
    def consequence(self) -> str:
        """Say what an unreadable response leads to, and how to choose something else."""
        mode = self.invalid_action
        return f"{mode}: {_CONSEQUENCES[mode]}; invalid_action= takes {', '.join(get_args(InvalidAction))}"


def load_game(game: str | type[TSMG[Any]]) -> type[TSMG[Any]]:
    """Return the game's class, itself or by ``"module:Class"``."""
    cls: type[TSMG[Any]] = resolve_name(game) if isinstance(game, str) else game
    return cls


def make_game(
    game: str | type[TSMG[Any]] | TSMG[Any],
    settings: Mapping[str, Any],
    environments: Sequence[str] = ENVIRONMENT_SETTINGS,
) -> TSMG[Any]:
    """Build a game from its settings, or the level and the twin of it that the settings of these names number.

    Raises:
        TypeError: a setting that there isn't (the message also lists what its ``environments`` take), a value of a type
            that the game can't use, or a setting beside a level, which decides it.
        ValueError: a value, a level or a twin that there isn't, or names of actions that no response could write.
    """
    if isinstance(game, TSMG):
        if settings:
            raise TypeError(f"a game that is already built takes no settings, got {', '.join(settings)}")
        return game
    cls = load_game(game)
    accepted, switches = game_settings(cls), _switches(cls)
    if LEVEL in settings and LEVEL not in accepted:
        own, level = {name: value for name, value in settings.items() if name != LEVEL}, settings[LEVEL]
        decided = level_of(cls, level).settings if level != 0 else {}
        if both := sorted(own.keys() & decided.keys()):
            raise TypeError(f"level={level} of {cls.__name__} decides {', '.join(both)}; leave one of the two out")
        return make_game(cls, {**own, **decided}, environments)
    if TWIN in settings and TWIN not in accepted:
        own = {name: value for name, value in settings.items() if name != TWIN}
        made = twin_of(make_game(cls, own, environments), settings[TWIN])
        vars(made)["made_with"] = dict(settings) if settings[TWIN] else own
        return made
    for name, value in settings.items():
        if name not in accepted:
            known = [*accepted, LEVEL, TWIN, *environments]
            near = did_you_mean(name, known)
            raise TypeError(f"{cls.__name__} has no setting {name!r}; it has {', '.join(known)}{near}")
        if name in switches:
            check_switch(name, value)
    try:
        made = cls(**settings)
    except TypeError as error:  # a value of the wrong type, met if it is first compared or counted
        if not settings:
            raise
        given = ", ".join(f"{name}={value!r}" for name, value in settings.items())
        raise TypeError(f"{cls.__name__} can't be made with {given}: {error}") from error
    vars(made)["made_with"] = dict(settings)  # not by assignment, which a game that is a frozen dataclass refuses
    _ = made.action_names  # names that no response could write are refused now, not at the first step
    return made


def level_of(cls: type[TSMG[Any]], number: int) -> Level:
    """Return a level of a game by its number; a ValueError if there is none of this number."""
    ladder = ladder_of(cls)
    if ladder is None:
        raise ValueError(
            f"{cls.__name__} has no levels: give it a ladder with textgames.register_ladder({cls.__name__}, "
            "'FILE.toml'), or play it with level=0"
        )
    return ladder.level(number)


def rounds_of(
    game: str | type[TSMG[Any]] | TSMG[Any], settings: Mapping[str, Any], max_steps: MaxSteps, made: TSMG[Any]
) -> int | None:
    """Return after how many rounds an environment of ``made`` ends: those of its level, or else ``max_steps``."""
    number = settings.get(LEVEL, 0)
    if isinstance(game, TSMG) or not number or LEVEL in game_settings(load_game(game)):
        return made.usual_limit if max_steps == "auto" and made.usual_limit else max_steps  # type: ignore[return-value]
    return level_of(load_game(game), number).horizon


def made(
    game: str | type[TSMG[Any]] | TSMG[Any],
    settings: Mapping[str, Any],
    max_steps: MaxSteps,
    format_penalty: float,
    invalid_action: str,
    environments: Sequence[str] = ENVIRONMENT_SETTINGS,
    max_cycles: int | None = None,
) -> tuple[TSMG[Any], EpisodeRules]:
    """Make what an environment is given into its game and its rules; errors are those of its parts."""
    built = make_game(game, settings, environments)
    limit = rounds_of(game, settings, max_steps, built) if max_cycles is None else max_cycles
    rules = EpisodeRules.checked(built, limit, format_penalty, invalid_action)
    return built, rules


@lru_cache(maxsize=64)
def game_settings(cls: type[TSMG[Any]]) -> tuple[str, ...]:
    """Return the names of a game's settings; a ValueError if one is called like a setting of environments."""
    names = tuple(taken_by(cls).named)
    if taken := [name for name in names if name in (*ENVIRONMENT_SETTINGS, *_ARGUMENTS)]:
        raise ValueError(
            f"{cls.__name__} has a setting {taken[0]!r}, but that is a setting of its environments; "
            f"call the game's own otherwise; names that are taken: {', '.join((*ENVIRONMENT_SETTINGS, *_ARGUMENTS))}"
        )
    return names


@lru_cache(maxsize=64)
def _switches(cls: type[TSMG[Any]]) -> frozenset[str]:
    return frozenset(name for name, one in taken_by(cls).named.items() if isinstance(one.default, bool))


def not_a_response(response: Any) -> str:
    """Say what is wrong with a response that isn't text."""
    return f"a response is a string, as a model writes it, got {type(response).__name__}: {response!r}"


def checked_options(options: Mapping[str, Any] | None, *accepted: str) -> Mapping[str, Any]:
    """Return the options of a reset, ``{}`` for none; a ValueError for an unknown one names the nearest."""
    if options is not None and not isinstance(options, Mapping):
        raise ValueError(f"the options of reset() must be a dictionary with {' and '.join(accepted)}, got {options!r}")
    for name in options or ():
        if name not in accepted:
            near = did_you_mean(str(name), accepted)
            raise ValueError(f"reset() has no option {name!r}{near}; accepted: {', '.join(accepted)}")
    return options or {}


def layout_generator(layout_seed: Any, generator: np.random.Generator) -> np.random.Generator:
    """Return what draws the initial state: a fresh generator of the layout seed, or the episode's own for ``None``."""
    if layout_seed is None:
        return generator
    check_whole('options["layout_seed"]', layout_seed, 0, None)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(int(layout_seed))))
