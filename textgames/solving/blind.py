"""Play that doesn't read: the best fixed distribution over actions, which is what a score of 0 means.

A blind player draws every action from one distribution over the names of actions, whatever it is shown: from its part
on the actions that are legal now, made to sum to 1, or from all legal ones with equal chances if it names none of them.
On the 4x4 lake uniform play succeeds in 0.3% of episodes and "half right, half down" in 27%.

What such a player gets is computed by the game's own chances, if the states within reach of a start are few enough
(:func:`blind_value`); else it is played. The best one of every scenario that ships is in a table (``shelf/blind.json``,
made by ``docs/tools/measure_blind.py``); for other games it is searched.

Candidates of the search are uniform play, every constant action and every pair half and half; from the best of them
mass is moved from one action to another, in steps that are halved, while that gains anything; a game too large for that
has fewer starts, and the best candidate. They are compared on the same starts and the same draws of chance. What is
found is reported on other starts, so that choosing among many doesn't flatter it, and has to beat uniform play by more
than chance.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import combinations, permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from textgames.cache import kept_file, read_cache, sources_digest, write_cache
from textgames.rounds import rounds_of_play
from textgames.settings import taken_by
from textgames.solving.fixed_policies import (
    BlindGraph,
    BlindPlay,
    Evaluate,
    blind_evaluator,
    blind_value,
    chances_of,
    policy_text,
)
from textgames.texts.actions import Unreadable
from textgames.tsmg import TSMG, Action
from textgames.twins import Twin
from textgames.yardsticks import FixedPolicy

if TYPE_CHECKING:
    from textgames.scenarios import Scenario

__all__ = ["BlindPlay", "FixedPolicy", "blind_play", "blind_play_of", "blind_value", "chances_of"]


SEARCH_STARTS, REPORT_STARTS = 200, 1000
"""Starts that a policy is chosen on and reported on, if values are computed."""

MOST_WORK = 5_000_000
"""States times rounds of all starts that a policy is chosen on: a minute. Beyond it there are fewer, at least 20."""

SEARCH_EPISODES, REPORT_EPISODES, MOST_ROUNDS = 500, 10_000, 100
"""Episodes that a policy is chosen on and reported on, if values come from play; fewer of more rounds, at least 20."""

SAMPLED_ACTIONS = 30  # how many constants are tried in a game whose actions can't be listed

SMALLEST_STEP = 1 / 16

STREAM = 0xB11D
"""Starts are drawn by the seeds ``[STREAM, 0]``, ``[STREAM, 1]`` and so on, which no episode of a scenario has."""

Values = NDArray[np.float64]


def blind_play(scenario: "Scenario") -> BlindPlay | None:
    """Return the best blind player of a scenario; ``None`` if several players act from outside.

    It is looked up in the table that ships, or else searched, which takes seconds, and kept in the user's cache folder.
    """
    return blind_play_of(scenario.game(), scenario.horizon)


def blind_play_of(game: TSMG[Any], horizon: int | None) -> BlindPlay | None:
    """Return :func:`blind_play` of a game and its horizon."""
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
    file = None
    if about:
        code = sources_digest(sorted(Path(str(files("textgames"))).rglob("*.py")))
        file = kept_file("blind", code, type(game).__mro__, json.dumps(about, sort_keys=True))
    kept = read_cache(file, lambda data: BlindPlay(**data))
    if kept is None:
        kept = search(game, horizon)
        write_cache(file, kept._asdict())
    return kept


@cache
def shipped_rows() -> Mapping[str, Mapping[str, Any]]:
    """Return the table that ships, ``{scenario: row}``; a row has the game, its settings, the horizon, and the play."""
    text = files("textgames").joinpath("shelf/blind.json").read_text(encoding="utf-8")
    rows: Mapping[str, Mapping[str, Any]] = json.loads(text)
    return rows


def found_by(game: TSMG[Any], horizon: int | None) -> dict[str, Any]:
    """Return what a row of the table is found by: game, own settings, horizon; ``{}`` for a game built by hand."""
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


def search(game: TSMG[Any], horizon: int | None) -> BlindPlay:
    """Find the best blind player of a game for one player, which needs a horizon or chances that can be computed."""
    if len(game.players) != 1:
        raise ValueError(f"blind play is for games of one player, {type(game).__name__} has {len(game.players)}")
    try:
        return _search(game, lambda first, count: computed(game, horizon, first, count), True)
    except NotAllComputedError:
        return _search(game, lambda first, count: played(game, horizon, first, count), False)


def _search(game: TSMG[Any], sample: Callable[[int, int], Evaluate], exact: bool) -> BlindPlay:
    seen, others = (SEARCH_STARTS, REPORT_STARTS) if exact else (SEARCH_EPISODES, REPORT_EPISODES)
    evaluate = sample(0, seen)
    found = _refine(evaluate, candidates(game), seen)
    gain = np.subtract(*evaluate([found, {}]).T)
    if gain.mean() <= 2 * standard_error(gain) + 1e-12:
        found = {}
    returns = sample(seen, others)([found])[:, 0]
    error = standard_error(returns)
    return BlindPlay(dict(found), policy_text(found), float(returns.mean()), error, len(returns), exact)


def standard_error(sample: Values) -> float:
    """Return the standard error of the mean of a sample of shape (n,)."""
    return float(sample.std(ddof=1) / np.sqrt(len(sample)))


def candidates(game: TSMG[Any]) -> list[FixedPolicy]:
    """Return what the search begins with: uniform play, constants, and pairs of few actions half and half."""
    if game.actions:
        pairs: list[FixedPolicy] = [{one: 0.5, other: 0.5} for one, other in combinations(game.actions, 2)]
        return [{}, *[{action: 1.0} for action in game.actions], *(pairs if len(game.actions) <= 12 else [])]
    rng = np.random.default_rng([STREAM, SAMPLED_ACTIONS])
    names = [game.sample_action(game.initial_state(rng), game.players[0], rng) for _ in range(SAMPLED_ACTIONS)]
    return [{}, *[{name: 1.0} for name in dict.fromkeys(names)]]


def _refine(evaluate: Evaluate, candidates: list[FixedPolicy], starts: int) -> FixedPolicy:
    values = evaluate(candidates)
    means = values.mean(axis=0)
    actions = list(dict.fromkeys(action for policy in candidates for action in policy))
    tops = [candidates[place] for place in np.argsort(-means, kind="stable")[:3].tolist()]
    best: FixedPolicy = tops[0]
    best_value = float(means.max())
    if len(actions) > 12 or len(values) < starts:
        return best
    for top in tops:
        at, value = _climb(evaluate, actions, top or dict.fromkeys(actions, 1 / len(actions)))
        if value > best_value + 1e-9:
            best, best_value = at, value
    return best


def _climb(evaluate: Evaluate, actions: list[Action], start: FixedPolicy) -> tuple[FixedPolicy, float]:
    at, value, step = dict(start), float(evaluate([start]).mean()), 0.25
    while step >= SMALLEST_STEP:
        nearby = []
        for giver, taker in permutations(actions, 2):
            if mass := min(step, at.get(giver, 0.0)):
                moved = {**at, giver: at[giver] - mass, taker: at.get(taker, 0.0) + mass}
                nearby.append({action: share for action, share in moved.items() if share > 1e-9})
        means = evaluate(nearby).mean(axis=0)
        if means.max() > value + 1e-9:
            at, value = nearby[int(means.argmax())], float(means.max())
        else:
            step /= 2
    return at, value


def best_constant(game: TSMG[Any], horizon: int | None) -> Action:
    """Return the best action to take always, among those that are listed, or a sample of those that aren't."""
    constants = [policy for policy in candidates(game) if len(policy) == 1]
    try:
        means = computed(game, horizon, 0, SEARCH_STARTS)(constants).mean(axis=0)
    except NotAllComputedError:
        means = played(game, horizon, 0, SEARCH_EPISODES)(constants).mean(axis=0)
    (action,) = constants[int(means.argmax())]
    return action


class NotAllComputedError(Exception):
    """The values of some start can't be computed."""


def _starts(game: TSMG[Any], first: int, count: int) -> list[Any]:
    return [game.initial_state(np.random.default_rng([STREAM, number])) for number in range(first, first + count)]


def computed(game: TSMG[Any], horizon: int | None, first: int, count: int) -> Evaluate:
    """Compute values by the game's chances, once for equal starts; a NotAllComputedError if a start is too large."""
    starts = _starts(game, first, count)
    one = blind_evaluator(game, starts[0], horizon, game.players[0])
    if isinstance(one, BlindGraph):
        starts = starts[: max(20, count * MOST_WORK // (SEARCH_STARTS * max(1, one.work)))]
    places = {start: place for place, start in enumerate(dict.fromkeys(starts))}
    rows = [places[start] for start in starts]
    solved = []
    for start in places:
        evaluator = blind_evaluator(game, start, horizon, game.players[0])
        if evaluator is None:
            raise NotAllComputedError
        solved.append(evaluator)
    return lambda policies: np.array([evaluator(policies) for evaluator in solved])[rows]


def played(game: TSMG[Any], horizon: int | None, first: int, count: int) -> Evaluate:
    """Return what evaluates policies by played episodes, the draws of each by a generator of its own."""
    if horizon is None:
        raise ValueError(f"blind play of {type(game).__name__} has to be played, which needs a horizon")
    count = min(count, max(20, count * MOST_ROUNDS // horizon))
    starts = _starts(game, first, count)

    def evaluate(policies: Sequence[FixedPolicy]) -> Values:
        returns = np.empty((count, len(policies)))
        for row, start in enumerate(starts):
            for column, policy in enumerate(policies):
                rng = np.random.default_rng([STREAM, first + row, 1])
                returns[row, column] = _play(game, start, horizon, policy, rng)
        return returns

    return evaluate


def _play(game: TSMG[Any], start: Any, horizon: int, policy: FixedPolicy, rng: np.random.Generator) -> float:
    total = 0.0
    for each in rounds_of_play(game, start, horizon, rng, lambda state, player: draw(game, state, policy, rng)):
        total += each.rewards[game.players[0]]
    return total


def draw(game: TSMG[Any], state: Any, policy: FixedPolicy, rng: np.random.Generator) -> Action:
    """Draw an action of a fixed policy in a state."""
    player = game.players[0]
    legal = game.legal_actions(state, player)
    if legal:
        bounds = np.cumsum(chances_of(policy, legal))
        return legal[min(int(np.searchsorted(bounds, rng.random(), side="right")), len(legal) - 1)]
    if policy:
        names = tuple(policy)
        name = names[int(rng.choice(len(names), p=chances_of(policy, names)))]
        if not isinstance(game.read_action(name, state, player), Unreadable):
            return name
    return game.sample_action(state, player, rng)
