"""What an environment adds to a game, the same for one player, several players and batches.

The game knows states and actions. The environment knows the horizon, the format penalty, what happens in place of an
unreadable response, and when it is an error to go on. These rules have their one place here; the environments
only arrange them.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pkgutil import resolve_name
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from textgames.ladders.ladder import Level, ladder_of
from textgames.names import did_you_mean
from textgames.settings import check_number, check_switch, check_whole, taken_by
from textgames.tsmg import TSMG, Player, paid_to
from textgames.twins.twin import twin_of

ENVIRONMENT_SETTINGS = (
    "max_steps", "max_episode_steps", "format_penalty", "invalid_action", "render_mode", "seat", "opponents"
)  # fmt: skip
"""The settings of environments that are not their game's."""

_ARGUMENTS = ("max_cycles", "num_envs", "autoreset_mode", "game", "id")
"""What else those who make environments by name are given."""

TWIN = "twin"
"""The setting that every game has: which of its twins is played (:mod:`textgames.twins`), 0 for the game itself."""

LEVEL = "level"
"""Likewise: which level of its ladder (:mod:`textgames.ladders`), 0 for none; it stands for settings and a horizon."""

ONE_SEAT_SETTINGS = ("seat", "opponents", "max_episode_steps")
"""Those of them that only environments for one player have."""

ALL_SEATS_SETTINGS = (*(name for name in ENVIRONMENT_SETTINGS if name not in ONE_SEAT_SETTINGS), "max_cycles")
"""The settings of the environments of all players."""

InvalidAction = Literal["default", "random", "noop", "terminate", "forfeit"]
"""What an unreadable response does: the first action, a random one, the game's no-op; or it ends the player's episode,
which pays nothing more (``terminate``) or what a loss pays (``forfeit``)."""


MaxSteps = int | Literal["auto"] | None
"""After how many rounds an episode is truncated: ``"auto"`` is the game's :attr:`~textgames.tsmg.TSMG.usual_limit`, and
``None`` is no limit."""


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
    """The settings of an environment that are not the game's.

    Attributes:
        max_steps: rounds after which the episode is truncated; ``None`` for no limit.
        format_penalty: subtracted from the reward of a step whose response is invalid.
        invalid_action: what is executed in its place.
    """

    max_steps: int | None
    format_penalty: float
    invalid_action: InvalidAction

    @classmethod
    def checked(
        cls, game: TSMG[Any], max_steps: int | None, format_penalty: float, invalid_action: str
    ) -> "EpisodeRules":
        """Build the rules from what a user wrote.

        Raises:
            ValueError: a value outside of its range; the message names it and says what is accepted.
        """
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
        if invalid_action not in get_args(InvalidAction):
            known, near = ", ".join(get_args(InvalidAction)), did_you_mean(str(invalid_action), get_args(InvalidAction))
            raise ValueError(f"invalid_action must be one of {known}, got {invalid_action!r}{near}")
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

    def choose(
        self, game: TSMG[Any], state: Any, player: str, response: str, rng: np.random.Generator
    ) -> tuple[str | None, str | None]:
        """The action that a response executes, and why it is invalid (``None`` for a valid one).

        The action is ``None`` when the response ends the player's episode (``"terminate"``, ``"forfeit"``). A random
        stand-in takes one uniform number of ``rng`` where actions are listed; nothing else here is random.

        Raises:
            TypeError: the response is not a string.
        """
        checked_response(response)
        action = game.interpret(response, state, player)
        if action is not None:
            return action, None
        reason = str(game.why_invalid(response, state, player).reason)
        if self.invalid_action in ("terminate", "forfeit"):
            return None, reason
        if self.invalid_action == "random":
            legal = game.legal_actions(state, player)
            return legal[int(rng.random() * len(legal))] if legal else game.sample_action(state, player, rng), reason
        if self.invalid_action == "noop":
            return game.noop, reason
        return game.default_action(state, player), reason

    def forfeited(self, game: TSMG[Any], state: Any, player: str, rounds_left: float) -> Mapping[str, float]:
        """``{player: reward}`` of those who are paid when a player's response has ended its episode."""
        return game.forfeit(state, player, rounds_left) if self.invalid_action == "forfeit" else {}

    def play(
        self,
        game: TSMG[Any],
        state: Any,
        player: str,
        response: str,
        rng: np.random.Generator,
        rounds_left: float,
    ) -> tuple[Any, float, bool, str, str | None, int]:
        """One round of a game with one player; one of several has a :class:`~textgames.environments.opponents.OneSeat`.

        Returns:
            The next state, the reward with the format penalty taken off, whether the episode is terminated, the name
            of the executed action (``""`` where none was), why the response was invalid (``None`` for a valid one),
            and how many rounds were played: one.
        """
        action, unreadable = self.choose(game, state, player, response, rng)
        if action is None:
            lost = self.forfeited(game, state, player, rounds_left).get(player, 0.0)
            return state, lost - self.format_penalty, True, "", unreadable, 1
        state, rewards, terminated = game.transition(state, {player: action}, rng)
        reward = paid_to(game, player, rewards)
        return state, reward if unreadable is None else reward - self.format_penalty, terminated, action, unreadable, 1


def load_game(game: str | type[TSMG[Any]]) -> type[TSMG[Any]]:
    """The game's class, from itself or from ``"module:Class"``, so that a game is imported when it is first made."""
    cls: type[TSMG[Any]] = resolve_name(game) if isinstance(game, str) else game
    return cls


def make_game(
    game: str | type[TSMG[Any]] | TSMG[Any],
    settings: Mapping[str, Any],
    environments: Sequence[str] = ENVIRONMENT_SETTINGS,
) -> TSMG[Any]:
    """Build a game from its settings, or the level and the twin of it that the settings of these names number.

    An error for an unknown one also lists what its ``environments`` take.

    Raises:
        TypeError: a setting that the game doesn't have; the message names the nearest one and lists all. Or a value of
            a type that the game can't use; or a setting beside a level, which decides it.
        ValueError: a switch, whose default is true or false, that is given something else; a level or a twin that
            there isn't; or names of actions that no response could write.
    """
    if isinstance(game, TSMG):
        if settings:
            raise TypeError(f"a game that is already built takes no settings, got {', '.join(settings)}")
        return game
    cls = load_game(game)
    accepted, switches = game_settings(cls), _switches(cls)
    if LEVEL in settings and LEVEL not in accepted:
        return make_game(cls, _at_level(cls, **settings), environments)
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
    except TypeError as error:  # a value of the wrong type, met where it is first compared or counted
        if not settings:
            raise
        given = ", ".join(f"{name}={value!r}" for name, value in settings.items())
        raise TypeError(f"{cls.__name__} can't be made with {given}: {error}") from error
    vars(made)["made_with"] = dict(settings)  # not by assignment, which a game that is a frozen dataclass refuses
    _ = made.action_names  # names that no response could write are refused now, not at the first step
    return made


def _at_level(cls: type[TSMG[Any]], level: int, **settings: Any) -> Mapping[str, Any]:
    """The settings of a level of a game, and others beside it: the text's, say."""
    if level == 0:
        return settings
    decided = level_of(cls, level).settings
    if both := sorted(settings.keys() & decided.keys()):
        raise TypeError(f"level={level} of {cls.__name__} decides {', '.join(both)}; leave one of the two out")
    return {**settings, **decided}


def level_of(cls: type[TSMG[Any]], number: int) -> Level:
    """A level of a game by its number.

    Raises:
        ValueError: the game has no levels, or none of this number.
    """
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
    """After how many rounds an environment ends: its level's horizon where one is played, else ``max_steps``.

    An id is registered with ``max_steps``, and nothing tells whether that or its user set it. ``made`` is the game
    with its settings, which knows what ``"auto"`` stands for.
    """
    number = settings.get(LEVEL, 0)
    if isinstance(game, TSMG) or not number or LEVEL in game_settings(load_game(game)):
        return made.usual_limit if max_steps == "auto" and made.usual_limit else max_steps  # type: ignore[return-value]
    return level_of(load_game(game), number).horizon


@lru_cache(maxsize=64)
def game_settings(cls: type[TSMG[Any]]) -> tuple[str, ...]:
    """The names of a game's settings; remembered, as reading a signature costs more than building most games.

    Raises:
        ValueError: one of them is called like a setting of environments, which would never let it through.
    """
    names = tuple(taken_by(cls).named)
    if taken := [name for name in names if name in (*ENVIRONMENT_SETTINGS, *_ARGUMENTS)]:
        raise ValueError(
            f"{cls.__name__} has a setting {taken[0]!r}, but that is a setting of its environments; "
            f"call the game's own otherwise; names that are taken: {', '.join((*ENVIRONMENT_SETTINGS, *_ARGUMENTS))}"
        )
    return names


@lru_cache(maxsize=64)
def _switches(cls: type[TSMG[Any]]) -> frozenset[str]:
    """The names of the settings whose defaults are true or false."""
    return frozenset(name for name, one in taken_by(cls).named.items() if isinstance(one.default, bool))


def checked_response(response: Any) -> str:
    """The response; a TypeError where it isn't text."""
    if not isinstance(response, str):
        raise TypeError(not_a_response(response))
    return response


def not_a_response(response: Any) -> str:
    """What is said of something that isn't text."""
    return f"a response is a string, as a model writes it, got {type(response).__name__}: {response!r}"


def checked_options(options: Mapping[str, Any] | None, *accepted: str) -> Mapping[str, Any]:
    """The options of a reset, ``{}`` for none; a ValueError for one that is not accepted names the nearest that is."""
    if options is not None and not isinstance(options, Mapping):
        raise ValueError(f"the options of reset() must be a dictionary with {' and '.join(accepted)}, got {options!r}")
    for name in options or ():
        if name not in accepted:
            near = did_you_mean(str(name), accepted)
            raise ValueError(f"reset() has no option {name!r}{near}; accepted: {', '.join(accepted)}")
    return options or {}


def layout_generator(layout_seed: Any, generator: np.random.Generator) -> np.random.Generator:
    """The generator that draws the initial state: a fresh one of the layout seed, or the episode's own for ``None``."""
    if layout_seed is None:
        return generator
    check_whole('options["layout_seed"]', layout_seed, 0, None)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(int(layout_seed))))


class Snapshot(NamedTuple):
    """Everything that the rest of an episode depends on: a value that can be kept and pickled.

    Attributes:
        state: the game's state.
        elapsed_steps: rounds played.
        agents: the players whose own episode goes on.
        rng_state: the state of the generator that the transitions draw from, as numpy describes it.
        sent_away: the players whose own episode was ended by an invalid response.
        pending: what the player of a Gymnasium environment was paid before its next step.
        steps: how many of these there were.
    """

    state: Any
    elapsed_steps: int
    agents: tuple[str, ...]
    rng_state: dict[str, Any]
    sent_away: tuple[str, ...] = ()
    pending: float = 0.0
    steps: int = 0


def check_snapshot(snapshot: Any) -> None:
    """Refuse what isn't a snapshot, with a TypeError that says where to have one from."""
    if not isinstance(snapshot, Snapshot):
        raise TypeError(f"a snapshot is what save_state() returned, got {type(snapshot).__name__}: {snapshot!r}")


def metrics_of(game: TSMG[Any], state: Any, player: Player) -> dict[str, float]:
    """``{name: value}`` of an episode that ended in ``state``; empty in a game without any."""
    return {name: float(value) for name, value in game.metrics(state, player).items()}


class Metrics(Mapping[str, float]):
    """The mapping that :func:`metrics_of` returns, computed when it is first looked at.

    Some metrics cost more than the whole episode did, such as exact regrets against optimal play; a training loop that
    never reads them shouldn't pay for them. A state is a value, so that they come out the same whenever they are asked
    for. The mapping is equal to the dictionary, and pickled as one.
    """

    def __init__(self, game: TSMG[Any], state: Any, player: Player) -> None:
        self._asked = game, state, player

    @cached_property
    def _values(self) -> dict[str, float]:
        return metrics_of(*self._asked)

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self._values)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self._values,)
