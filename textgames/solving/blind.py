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
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textgames.cache import cache_folder, own_sources, read_cache, sources_digest, write_cache
from textgames.solving.reachable import Branch, Expanded, Reachable
from textgames.tsmg import TSMG, Action, Player
from textgames.yardsticks import find_yardstick

if TYPE_CHECKING:
    from textgames.scenarios import Scenario

FixedPolicy = Mapping[Action, float]
"""A distribution over the names of actions; ``{}`` is the uniform one."""

MAX_STATES = 10_000
"""The most states within reach of one start that are solved: a second, and 20 megabytes."""


class BlindPlay(NamedTuple):
    """The best blind player of a game that was found, and what it gets.

    Attributes:
        policy: its distribution over actions; ``{}`` for equal chances of all legal ones.
        text: the same for people: ``"down 0.5, right 0.5"``, ``"uniform"``, ``"always hit"``.
        value: its mean return, on other starts than those that it was chosen on.
        standard_error: of ``value``, over these starts or episodes.
        episodes: how many starts, or episodes where it was played.
        exact: whether the return from each start is computed and not played.
    """

    policy: FixedPolicy
    text: str
    value: float
    standard_error: float
    episodes: int
    exact: bool


def chances_of(policy: FixedPolicy, legal: Sequence[Action]) -> list[float]:
    """The probability of each legal action under a fixed policy."""
    weights = [policy.get(action, 0.0) for action in legal]
    total = sum(weights)
    return [weight / total for weight in weights] if total > 0 else [1 / len(legal)] * len(legal)


def policy_text(policy: FixedPolicy) -> str:
    """A fixed policy for people, the most frequent action first."""
    if not policy:
        return "uniform"
    if len(policy) == 1:
        return f"always {next(iter(policy))}"
    ordered = sorted(policy.items(), key=lambda item: -item[1])
    return ", ".join(f"{action} {share:.3g}" for action, share in ordered)


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
    about = found_by(game, horizon)
    for row in shipped_rows().values():
        if about and row.items() >= about.items():
            return BlindPlay(**{name: row[name] for name in BlindPlay._fields})
    file = _cache_file(game, about) if about else None
    kept = read_cache(file, lambda data: BlindPlay(**data))
    if kept is None:
        from textgames.solving.blind_search import search

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
    defaults = inspect.signature(type(game)).parameters
    settings = {name: value for name, value in game.made_with.items() if value != defaults[name].default}
    cls = f"{type(game).__module__}:{type(game).__qualname__}"
    about: dict[str, Any] = {"game": cls, "settings": settings, "horizon": horizon}
    try:
        about = json.loads(json.dumps(about))
    except TypeError:  # a setting that JSON doesn't have, such as a function
        return {}
    return about


def _cache_file(game: TSMG[Any], about: Mapping[str, Any]) -> Path | None:
    """Where the play of a game that has no row is kept, by its settings and the source code that it depends on."""
    own = own_sources(type(game).__mro__)
    if own is None:
        return None
    ours = sources_digest(sorted(Path(str(files("textgames"))).rglob("*.py")))
    text = f"{ours} {sources_digest(own)} {json.dumps(about, sort_keys=True)}"
    return cache_folder() / f"blind-{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"


# ---------------------------------------------------------------- exact values


def blind_value(
    game: TSMG[Any], state: Any, steps_left: int | None, player: Player, policy: FixedPolicy
) -> float | None:
    """The exact expected return of a player that plays a fixed distribution over actions from a state on.

    Args:
        game: a game for one player that tells its chances.
        state: where it starts; nothing is hidden.
        steps_left: rounds until the episode is truncated; ``None`` for no limit.
        player: whose return is meant.
        policy: ``{action: weight}``; ``{}`` for equal chances.

    Returns:
        ``None`` where it can't be computed: several players, chances that aren't told, actions that can't be listed, or
        more than :data:`MAX_STATES` states within reach.
    """
    evaluate = blind_evaluator(game, state, steps_left, player)
    return None if evaluate is None else float(evaluate([policy])[0])


Evaluate = Callable[[Sequence[FixedPolicy]], NDArray[np.float64]]
"""``policies -> the value of each``, which takes little longer for several than for one."""


def blind_evaluator(game: TSMG[Any], state: Any, steps_left: int | None, player: Player) -> Evaluate | None:
    """What computes :func:`blind_value` of any policies from one state; ``None`` where that returns ``None``."""
    if len(game.players) != 1:
        return None
    yardstick = find_yardstick(game)
    if yardstick is not None and yardstick.blind_value(state, steps_left, player, {}) is not None:
        return lambda policies: np.array([yardstick.blind_value(state, steps_left, player, one) for one in policies])
    try:
        return BlindGraph(game, state, steps_left, player).values
    except (ValueError, NotImplementedError):
        return None


class BlindGraph:
    """All that may happen from one start, with the names of the actions; every fixed policy is evaluated on it.

    Raises:
        ValueError: too many states, actions that can't be listed, or a round with too many outcomes.
        NotImplementedError: the game doesn't tell its chances.
    """

    def __init__(self, game: TSMG[Any], start: Any, steps_left: int | None, player: Player) -> None:
        self._steps_left = steps_left
        self._legal: list[tuple[Action, ...]] = []  # of every state that was expanded, in that order
        outcomes_left = 20 * MAX_STATES

        def expand(state: Any) -> Expanded:
            nonlocal outcomes_left
            legal = game.legal_actions(state, player)
            if not legal:
                raise ValueError("the actions can't be listed")
            branches: list[Branch] = []
            for action in legal:
                outcomes = game.outcomes(state, {player: action})
                outcomes_left -= len(outcomes)
                if outcomes_left < 0:
                    raise ValueError("a round has too many outcomes")
                branches.append([(chance, after, rewards[player], over) for chance, after, rewards, over in outcomes])
            self._legal.append(legal)
            return Expanded(True, branches)

        self._reachable = Reachable(start, expand, steps_left, MAX_STATES)
        self._reachable.numbers.clear()  # only the start is asked about: many graphs are kept, and the states are most

    def values(self, policies: Sequence[FixedPolicy]) -> NDArray[np.float64]:
        """The value of the start under each policy, shape (policies,)."""
        known: dict[tuple[Action, ...], NDArray[np.float64]] = {}  # most states have the same legal actions
        for legal in self._legal:
            if legal not in known:
                known[legal] = np.array([chances_of(policy, legal) for policy in policies]).T
        end = np.ones((1, len(policies)))
        chances = np.concatenate([end, *[known[legal] for legal in self._legal]])
        return self._reachable.fixed_values(self._steps_left, chances)
