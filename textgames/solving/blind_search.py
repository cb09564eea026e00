"""Finding the best fixed distribution over actions of a game: see :mod:`textgames.solving.blind`.

Candidates are uniform play, every constant action and every pair half and half; from the best of them mass is moved
from one action to another, in steps that are halved, while that gains anything. They are compared on the same starts,
and where they are played, by the same draws of chance. What is found is reported on other starts, so that choosing
among many doesn't flatter it; and it has to beat uniform play by more than chance, else uniform play it is.
"""

from collections.abc import Callable, Sequence
from itertools import combinations, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textgames.rounds import rounds_of_play
from textgames.solving.fixed_policies import BlindPlay, FixedPolicy, blind_evaluator, chances_of, policy_text
from textgames.texts.actions import Unreadable
from textgames.tsmg import TSMG, Action

SEARCH_STARTS, REPORT_STARTS = 200, 1000
"""Starts that a policy is chosen on and reported on, where values are computed."""

SEARCH_EPISODES, REPORT_EPISODES = 500, 10_000
"""Episodes that a policy is chosen on and reported on, where values come from play."""

SAMPLED_ACTIONS = 30
"""How many constants are tried in a game whose actions can't be listed."""

SMALLEST_STEP = 1 / 16

STREAM = 0xB11D
"""Starts are drawn by the seeds ``[STREAM, 0]``, ``[STREAM, 1]`` and so on, which no episode of a scenario has."""

Values = NDArray[np.float64]
Evaluate = Callable[[Sequence[FixedPolicy]], Values]
"""``policies -> values`` of shape (starts, policies)."""


def search(game: TSMG[Any], horizon: int | None) -> BlindPlay:
    """Find the best blind player of a game for one player.

    Raises:
        ValueError: the game has several players; or no horizon, chances that can't be computed, and no end.
    """
    if len(game.players) != 1:
        raise ValueError(f"blind play is for games of one player, {type(game).__name__} has {len(game.players)}")
    exact = all(blind_evaluator(game, start, horizon, game.players[0]) is not None for start in _starts(game, 0, 3))
    if exact:
        try:
            return _search(game, lambda first, count: computed(game, horizon, first, count), True)
        except NotAllComputedError:  # a start that is larger than the first ones
            pass
    return _search(game, lambda first, count: played(game, horizon, first, count), False)


def _search(game: TSMG[Any], sample: Callable[[int, int], Evaluate], exact: bool) -> BlindPlay:
    seen, others = (SEARCH_STARTS, REPORT_STARTS) if exact else (SEARCH_EPISODES, REPORT_EPISODES)
    evaluate = sample(0, seen)
    found = _refine(evaluate, candidates(game))
    gain = np.subtract(*evaluate([found, {}]).T)
    if gain.mean() <= 2 * standard_error(gain) + 1e-12:
        found = {}
    returns = sample(seen, others)([found])[:, 0]
    error = standard_error(returns)
    return BlindPlay(dict(found), policy_text(found), float(returns.mean()), error, len(returns), exact)


def standard_error(sample: Values) -> float:
    """The standard error of the mean of a sample of shape (n,)."""
    return float(sample.std(ddof=1) / np.sqrt(len(sample)))


def candidates(game: TSMG[Any]) -> list[FixedPolicy]:
    """What the search begins with: uniform play, constants, and pairs of few actions half and half."""
    if game.actions:
        pairs: list[FixedPolicy] = [{one: 0.5, other: 0.5} for one, other in combinations(game.actions, 2)]
        return [{}, *[{action: 1.0} for action in game.actions], *(pairs if len(game.actions) <= 12 else [])]
    rng = np.random.default_rng([STREAM, SAMPLED_ACTIONS])
    names = [game.sample_action(game.initial_state(rng), game.players[0], rng) for _ in range(SAMPLED_ACTIONS)]
    return [{}, *[{name: 1.0} for name in dict.fromkeys(names)]]


def _refine(evaluate: Evaluate, candidates: list[FixedPolicy]) -> FixedPolicy:
    """The best of the candidates and of what moving mass from action to action makes of the best three."""
    means = evaluate(candidates).mean(axis=0)
    actions = list(dict.fromkeys(action for policy in candidates for action in policy))
    tops = [candidates[place] for place in np.argsort(-means, kind="stable")[:3].tolist()]
    best: FixedPolicy = tops[0]
    best_value = float(means.max())
    if len(actions) > 12:
        return best
    for top in tops:
        at, value = _climb(evaluate, actions, top or dict.fromkeys(actions, 1 / len(actions)))
        if value > best_value + 1e-9:
            best, best_value = at, value
    return best


def _climb(evaluate: Evaluate, actions: list[Action], start: FixedPolicy) -> tuple[FixedPolicy, float]:
    at, value, step = dict(start), float(evaluate([start]).mean()), 0.25
    while step >= SMALLEST_STEP:
        nearby = [_moved(at, giver, taker, step) for giver, taker in permutations(actions, 2) if at.get(giver, 0) > 0]
        means = evaluate(nearby).mean(axis=0)
        if means.max() > value + 1e-9:
            at, value = nearby[int(means.argmax())], float(means.max())
        else:
            step /= 2
    return at, value


def _moved(policy: FixedPolicy, giver: Action, taker: Action, step: float) -> dict[Action, float]:
    mass = min(step, policy[giver])
    moved = {**policy, giver: policy[giver] - mass, taker: policy.get(taker, 0.0) + mass}
    return {action: share for action, share in moved.items() if share > 1e-9}


# ---------------------------------------------------------------- values of policies over starts


class NotAllComputedError(Exception):
    """The values of some start can't be computed."""


def _starts(game: TSMG[Any], first: int, count: int) -> list[Any]:
    return [game.initial_state(np.random.default_rng([STREAM, number])) for number in range(first, first + count)]


def computed(game: TSMG[Any], horizon: int | None, first: int, count: int) -> Evaluate:
    """Values by the game's chances; starts that are equal are solved once.

    Raises:
        NotAllComputedError: some start is too large.
    """
    starts = _starts(game, first, count)
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
    """Returns of played episodes, the draws of each by a generator of its own."""
    if horizon is None:
        raise ValueError(f"blind play of {type(game).__name__} has to be played, which needs a horizon")
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
