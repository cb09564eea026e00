"""The fixed scenarios that agents are compared on, as data.

Episode ``k`` of a scenario is ``seed = first_seed + k``, the same for every agent. Training draws its seeds from 0 to
9,999 only, so no evaluation layout is ever a training layout by seed.

The games, scenarios and suites that ship are data: one file a suite in ``shelf/``, read here once. A game of theirs is
registered under its id, with its ``yardstick``, the ``vocabulary`` of its twins, and its ``ladder``, if it names them.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium

from textgames.environments.rules import INVALID_ACTION, LEVEL, TWIN, EpisodeRules, game_settings, load_game, make_game
from textgames.ladders import Ladder, Level, ladder_of, register_ladder
from textgames.names import nearest_or_all
from textgames.registry import game_of, parallel_env, register, settings_of, shared_game
from textgames.settings import check_whole, taken_by
from textgames.tsmg import TSMG
from textgames.twins import Twin, has_twins, register_vocabulary, vocabulary_digest
from textgames.yardsticks import register_yardstick

if TYPE_CHECKING:
    from textgames.environments.parallel import TextParallelEnv

TRAINING_SEEDS = range(10_000)
"""The seeds that training may use."""


_LEVEL_SUFFIX, _TWIN_SUFFIX = "-level-", "-twin-"
_NUMBERED = rf"({_LEVEL_SUFFIX}|{_TWIN_SUFFIX})(\d{{1,9}})"
_NAME = re.compile(rf"(.+?)(?:\(([^()]*)\))?((?:{_NUMBERED}){{0,2}})", re.ASCII)


class Scenario(NamedTuple):
    """One row of the table.

    Attributes:
        name: its name in commands.
        env_id: the environment's id.
        kwargs: the environment's settings, without the horizon.
        horizon: rounds after which an episode is truncated.
        first_seed: seed of episode 0.
        training: whether it is one of the two that agents are post-trained on.
        protocol: what an unreadable response leads to when agents play it, by the names of :mod:`agents.protocol`.
            Environments that are made here go by ``random``.
        moves: likewise, whether prompts list the legal moves: ``"listed"`` or ``"unlisted"``.
        level_number: which level of its game's ladder it is (:mod:`textgames.ladders`); 0 for none.
        vocabulary: the digest of the words that a twin is told with; empty if it is none, or none was noted.
    """

    name: str
    env_id: str
    kwargs: Mapping[str, Any]
    horizon: int
    first_seed: int
    training: bool = False
    protocol: str = "random"
    moves: str = "listed"
    level_number: int = 0
    vocabulary: str = ""

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, ({**self._asdict(), "kwargs": dict(self.kwargs)},)  # a MappingProxyType can't be pickled

    def make(self, **kwargs: Any) -> Any:
        """Make its environment: a Gymnasium one for one player, else a ParallelEnv.

        ``kwargs`` override settings. Its horizon is that of its board: another one has the limit that fits it.
        """
        if len(self._game_with(kwargs).players) > 1:
            return self.parallel_env(**kwargs)
        return gymnasium.make(self.env_id, **self.settings(**kwargs))

    def parallel_env(self, **kwargs: Any) -> "TextParallelEnv":
        return parallel_env(self.env_id, **self.settings(**kwargs))

    def settings(self, **kwargs: Any) -> dict[str, Any]:
        """Return the settings of its environment, horizon included, with ``kwargs`` in place of its own."""
        return {"max_steps": self.horizon_with(kwargs), **self.kwargs, **kwargs}

    def horizon_with(self, kwargs: Mapping[str, Any]) -> int:
        """Return the horizon with other settings: its own, or that of another board if they make one."""
        return self._horizon_of(self._game_with(kwargs))

    def _horizon_of(self, game: TSMG[Any]) -> int:
        limit = game.usual_limit
        return self.horizon if limit is None or limit == self.game().usual_limit else limit

    def with_settings(self, /, **settings: Any) -> "Scenario":
        """Return the scenario with other settings of its game, named after them: ``frozen-lake(size=6)``.

        Also ``max_steps``, its horizon, which otherwise follows the board; ``level`` and ``twin`` number those of the
        scenario. Settings that are the scenario's own change nothing. A ValueError for an unknown setting lists all.
        """
        if not settings:
            return self
        registered = settings_of(self.env_id)
        defaults = {name: one.default for name, one in taken_by(load_game(registered.pop("game"))).named.items()}
        numbers = {name: settings.pop(name) for name in (LEVEL, TWIN) if name in settings and name not in defaults}
        if numbers or self.twin_number:
            plain = self.twin(0).with_settings(**settings)
            level = plain.level(numbers[LEVEL]) if numbers.get(LEVEL, 0) != 0 else plain
            return level.twin(numbers.get(TWIN, self.twin_number))
        rounds = settings.pop("max_steps", None)
        now = {**defaults, **registered, **self.kwargs}
        given = {name: _alike(value, defaults.get(name)) for name, value in settings.items()}
        own = {name: value for name, value in given.items() if name not in now or value != now[name]}
        named = {name: value for name, value in {**registered, **self.kwargs}.items() if name in defaults} | own
        try:
            game = make_game(settings_of(self.env_id)["game"], named, ("max_steps",))
        except TypeError as error:
            raise ValueError(str(error)) from None
        fits = self._horizon_of(game)
        changed = own if rounds in (None, fits) else {**own, "max_steps": rounds}
        horizon = fits if rounds is None else rounds
        EpisodeRules.checked(game, horizon, 0.0, INVALID_ACTION)
        if not changed:
            return self
        if self.level_number or self.name.endswith(")"):
            raise ValueError(f"{self.name} has its own settings; give the plain scenario all of them at once")
        told = ",".join(f"{name}={json.dumps(changed[name])}" for name in sorted(changed))
        if set("()") & set(told):
            raise ValueError(f"a setting in a scenario's name has no parentheses, got {told}")
        _read_settings(told)  # a NaN, null or a table can't be named
        kwargs = MappingProxyType({**self.kwargs, **own})
        return self._replace(name=f"{self.name}({told})", kwargs=kwargs, horizon=horizon, training=False)

    @property
    def standard_name(self) -> str:
        """The name of the scenario that it has other settings than; its own if it has that one's."""
        return re.sub(r"(?<! )\([^()]*\)", "", self.name, count=1)

    def _game_with(self, kwargs: Mapping[str, Any]) -> TSMG[Any]:
        # what isn't the game's own, such as a render mode and gymnasium.make's arguments, plays no part in its rules
        names = game_settings(load_game(settings_of(self.env_id)["game"]))
        own = {name: value for name, value in kwargs.items() if name in names}
        return game_of(self.env_id, **{**self.kwargs, **own}) if own else self.game()

    def game(self) -> TSMG[Any]:
        return shared_game(self.env_id, self.kwargs)

    def seed(self, episode: int) -> int:
        return self.first_seed + episode

    @property
    def rules(self) -> tuple[str, str]:
        """The protocol, and whether prompts list the moves: scores are compared among those that have both alike."""
        return self.protocol, self.moves

    @property
    def twin_number(self) -> int:
        """Which twin of its game is played (:mod:`textgames.twins`); 0 for the game itself."""
        return int(self.kwargs.get(TWIN, 0))

    @property
    def has_twins(self) -> bool:
        return has_twins(game_of(self.env_id, **{**self.kwargs, TWIN: 0}))

    def twin(self, number: int) -> "Scenario":
        """Return the scenario with a twin of its game, of the same seeds (0: the game itself), or raise ValueError."""
        name, kwargs = self.plain_name, {key: value for key, value in self.kwargs.items() if key != TWIN}
        check_whole(TWIN, number, 0, None)
        if number == 0:
            return self._replace(name=name, kwargs=MappingProxyType(kwargs), vocabulary="")
        if not self.has_twins:
            raise ValueError(f"{name} has no twins")
        told = MappingProxyType({**kwargs, TWIN: number})
        words = vocabulary_digest(shared_game(self.env_id, kwargs), number)
        return self._replace(name=f"{name}{_TWIN_SUFFIX}{number}", kwargs=told, vocabulary=words)

    @property
    def plain_name(self) -> str:
        """The name of the scenario that it is a twin of; its own if it is none."""
        # results may have put a protocol behind the name
        return self.name.replace(f"{_TWIN_SUFFIX}{self.twin_number}", "", 1)

    @property
    def ladder(self) -> Ladder | None:
        """The levels that it has; ``None`` if those of its game are another scenario's, or there are none."""
        ladder = ladder_of(load_game(settings_of(self.env_id)["game"]))
        return ladder if ladder is not None and ladder.scenario == self.plain_name else None

    def level(self, number: int) -> "Scenario":
        """Return a level of its ladder, with its settings alone and the same first seed, or raise ValueError."""
        if self.ladder is None:
            raise ValueError(f"{self.name} has no levels")
        settings, horizon, *_ = self.ladder.level(number)
        return self._replace(
            name=f"{self.plain_name}{_LEVEL_SUFFIX}{number}",
            kwargs=settings,
            horizon=horizon,
            training=False,
            level_number=number,
        ).twin(self.twin_number)

    @property
    def levels(self) -> tuple["Scenario", ...]:
        return tuple(self.level(number) for number, _ in enumerate(self.ladder.levels if self.ladder else (), 1))

    @property
    def rung(self) -> Level | None:
        """What its ladder says of its level; ``None`` if it is no level, or one that the ladder had once."""
        ladder = ladder_of(load_game(settings_of(self.env_id)["game"]))
        number, settings = self.level_number, {key: value for key, value in self.kwargs.items() if key != TWIN}
        rung = ladder.levels[number - 1] if ladder is not None and 0 < number <= len(ladder.levels) else None
        return rung if rung is not None and (settings, self.horizon) == (rung.settings, rung.horizon) else None

    @property
    def ladder_name(self) -> str:
        """The name without the level's number: what the levels of one ladder share."""
        return self.name.replace(f"{_LEVEL_SUFFIX}{self.level_number}", "", 1)


_FILES = ("paper", "planning", "exploration", "strategy", "social")
"""The suites in the order of the tables; ``shelf/NAME.toml`` has the games, the scenarios and the names of each."""


def _shelf(name: str) -> dict[str, Any]:
    return tomllib.loads(files("textgames").joinpath(f"shelf/{name}.toml").read_text(encoding="utf-8"))


_PARTS = {"yardstick": register_yardstick, "vocabulary": register_vocabulary, "ladder": register_ladder}
_SHELVES = {name: _shelf(name) for name in _FILES}

for _data in (*_SHELVES.values(), _shelf("openspiel")):  # the last one has games alone, no scenarios and no suite
    for _id, _settings in _data["games"].items():
        _settings = dict(_settings)
        for _part, _register in _PARTS.items():
            if (_entry := _settings.pop(_part, None)) is not None:
                _register(_settings["game"], _entry)
        register(_id, **_settings)

register_yardstick(Twin, "textgames.twins.twin:twin_yardstick")

SCENARIOS: Mapping[str, Scenario] = MappingProxyType(
    {
        name: Scenario(
            name,
            row["env_id"],
            MappingProxyType(row.get("settings", {})),
            row["horizon"],
            row["first_seed"],
            row.get("training", False),
        )
        for data in _SHELVES.values()
        for name, row in data["scenarios"].items()
    }
)
"""The scenarios by name, in the order of the tables."""


def known_scenario(name: str) -> Scenario | None:
    """Return the scenario of a name, such as ``"frozen-lake-level-3-twin-3"``; ``None`` if there is none."""
    try:
        return _scenario(name)
    except ValueError:
        return None


FIRST_SEED_OF_OTHERS = 100_000
"""The first seed of games that aren't in the table: beyond the training seeds and every scenario's."""


def scenario_of_game(name: str) -> Scenario:
    """Build the scenario of a game by its id, such as ``"my_module:MyGame-v0"``, with the settings of its registration.

    Others stand behind the id as behind a scenario's name. A ValueError if there is no such id or it was registered
    without a limit of steps; an ImportError if its module can't be imported.
    """
    env_id = _parts(name)[0]
    limit = settings_of(env_id).get("max_steps")
    if limit == "auto":
        limit = parallel_env(env_id).rules.max_steps
    if limit is None:
        raise ValueError(f"{env_id!r} has no step limit; register it with one: textgames.register(..., max_steps=20)")
    return _named(Scenario(env_id, env_id, {}, limit, FIRST_SEED_OF_OTHERS), name)


def _unpickled(fields: dict[str, Any]) -> Scenario:
    return Scenario(**{**fields, "kwargs": MappingProxyType(fields["kwargs"])})


def _scenario(name: str) -> Scenario | None:
    plain = _parts(name)[0]
    return _named(SCENARIOS[plain], name) if plain in SCENARIOS else None


def _parts(name: str) -> tuple[str, str, str]:
    """Return the plain name, the settings and the numbers of level and twin in a scenario's name."""
    plain, settings, numbered = found.groups()[:3] if (found := _NAME.fullmatch(name)) else (name, None, "")
    return plain, settings or "", numbered


def _named(plain: Scenario, name: str) -> Scenario:
    """Return the scenario of a name, made of the plain one."""
    _, settings, numbered = _parts(name)
    numbers = {suffix.strip("-"): int(number) for suffix, number in re.findall(_NUMBERED, numbered)}
    scenario = plain.with_settings(**_read_settings(settings) | numbers)
    if scenario.name != name:
        raise ValueError(f"{name!r} is {scenario.name}")
    return scenario


def _alike(value: Any, usual: Any) -> Any:
    """Return a number as the default's type, so that ``1`` and ``true`` are one scenario, and ``1`` and ``1.0``."""
    turned = type(usual)(value) if isinstance(usual, bool | float) and type(value) is int else value
    return turned if turned == value else value


def _read_settings(text: str) -> dict[str, Any]:
    """Read the settings in a scenario's name, ``size=6,is_slippery=true``: values are TOML's."""
    try:
        (settings,) = tomllib.loads(f"settings = {{{text}}}").values()
    except (ValueError, RecursionError):
        raise ValueError(f"the settings in a name are (NAME=VALUE,...), such as (size=6), got ({text})") from None
    return dict(settings)


def why_unknown(name: str, also: Iterable[str] = ()) -> str:
    """Return why there is no scenario of a name, or which may have been meant (or which of ``also``), as a clause."""
    try:
        _scenario(name)
    except ValueError as error:
        return str(error)
    return nearest_or_all(name, sorted({*SCENARIOS, *also}))


LITTLE_HEADROOM: frozenset[str] = frozenset(
    name for data in _SHELVES.values() for name, row in data["scenarios"].items() if row.get("little_headroom", False)
)
"""Scenarios in which play that doesn't read gets most of what there is: they measure little, and are in no suite."""

SUITES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **{name: tuple(data["suite"]) for name, data in _SHELVES.items()},
        "all": tuple(name for name in SCENARIOS if name not in LITTLE_HEADROOM),
    }
)
"""The scenarios of every suite; a run plays ``paper`` by default, and ``all`` is all but :data:`LITTLE_HEADROOM`."""

ABOUT_SUITES: Mapping[str, str] = MappingProxyType(
    {**{name: data["about"] for name, data in _SHELVES.items()}, "all": "every scenario that measures enough"}
)
"""What every suite tests, in a few words."""
