"""Head-to-head strength: Bradley-Terry ratings of games between agents, on the Elo scale.

Model: ``P(a beats b) = 1 / (1 + 10^((rating_b - rating_a) / 400))`` (Bradley & Terry 1952). A draw is half a win for
each. Two agents have finite ratings on one scale only if wins and draws lead from each to the other (Ford 1957): agents
are rated in groups that are linked in this way.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import isclose, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.common.intervals import SEED, Array, Estimate, of_replicates

ELO = 400 / log(10)  # Elo points per natural-log unit of strength
ALPHA = 0.1
"""The weight of a weak prior under which two agents that met are equal; some replicates need it. Agents that never met
are tied by nothing: in a chain of 16 such ties would take away half of what is between the first and the last one."""

RESAMPLES = 400


class Game(NamedTuple):
    """One game: who played, and the first one's result: 1 won, 0 lost, 0.5 drawn."""

    first: str
    second: str
    result: float
    seed: int | None = None  # games with equal seeds had the same start, so they depend on each other; None: with none
    weight: float = 1.0  # in a rating over several games

    @classmethod
    def of_table(cls, returns: Sequence[tuple[str, float]], seed: int | None = None) -> "list[Game]":
        """Return the games that one table was, of every two agents; ``returns`` are (agent, return) by seat."""
        by_agent: dict[str, list[float]] = {}
        for agent, value in returns:
            by_agent.setdefault(agent, []).append(value)
        means = {agent: sum(values) / len(values) for agent, values in by_agent.items()}
        return [
            cls(a, b, 0.5 if isclose(means[a], means[b], abs_tol=1e-9) else float(means[a] > means[b]), seed)
            for a, b in combinations(means, 2)
        ]


def meetings(games: Sequence[Game]) -> dict[tuple[str, str], list[int]]:
    """Return ``{(a, b): [a's wins, draws, losses]}`` of every two agents that met, ``a`` before ``b`` by name."""
    counts: dict[tuple[str, str], list[int]] = {}
    for game in games:
        if game.first != game.second:
            a, b = sorted(game[:2])
            won = game.result if game.first == a else 1 - game.result
            counts.setdefault((a, b), [0, 0, 0])[int(2 - 2 * won)] += 1
    return dict(sorted(counts.items()))


class Rating(NamedTuple):
    """An agent's record and its rating, which has mean 0 within the group."""

    agent: str
    group: int  # agents with equal numbers are on one scale; ratings of different groups can't be compared
    rating: Estimate | None  # ``None`` for an agent that is alone in its group
    # whether it is one of several agents that beat each other in a circle (a beat b more often than not, b beat c, c
    # beat a), whose results no order explains
    in_cycle: bool
    games: int  # against others
    wins: int
    losses: int
    draws: int


def over_games(games: Mapping[str, Sequence[Game]]) -> list[Rating]:
    """Rate agents over ``{scenario: games}``: every scenario weighs the same, and draws its starts for itself."""
    met = {name: [game for game in own if game.first != game.second] for name, own in games.items()}
    mean = sum(map(len, met.values())) / len(met)
    numbers: dict[tuple[str, int | None], int] = {}
    pooled = [
        game._replace(seed=numbers.setdefault((name, game.seed), len(numbers)), weight=mean / len(own))
        for name, own in sorted(met.items())
        for game in sorted(own, key=lambda game: game.seed or 0)
    ]
    return bradley_terry(pooled)


def bradley_terry(games: Sequence[Game]) -> list[Rating]:
    """Rate all agents that played another one, best first within each group, the groups by their share of points.

    The intervals are from a Bayesian bootstrap over seeds, whose games are drawn together, in which every pair that met
    plays one further game, with a random winner: equal results leave room for another one, too.
    """
    games = [game for game in games if game.first != game.second]
    # sums, and so the last digits of ratings, must not depend on the order in which games were finished
    games.sort(key=lambda game: (game.seed is None, game.seed or 0, game.first, game.second, game.result))
    names = sorted({name for game in games for name in game[:2]})
    if not names:
        return []
    place = {name: index for index, name in enumerate(names)}
    # columns: first, second, result, seed, weight; a game without a seed gets one of its own
    table = np.array(
        [
            (place[game[0]], place[game[1]], game.result, -1 - index if game.seed is None else game.seed, game.weight)
            for index, game in enumerate(games)
        ]
    )
    from scipy.sparse.csgraph import connected_components

    def linked(arrows: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Return the number of each agent's group: arrows lead from each of its members to every other one."""
        numbers: NDArray[np.int32] = connected_components(arrows, directed=True, connection="strong")[1]
        return numbers

    points = _points(table, np.ones(len(table)), len(names))
    decided = table[table[:, 2] != 0.5]
    wins = _points(decided, np.ones(len(decided)), len(names))
    groups, circles = linked(points > 0), linked(points > points.T)
    share = {}  # of the points that a group's members took from others
    for group in set(groups.tolist()):
        taken, given = points[groups == group].sum(), points[:, groups == group].sum()
        share[group] = taken / (taken + given)
    ratings: list[Rating] = []
    for number, group in enumerate(sorted(share, key=lambda group: (-share[group], group)), 1):
        members = np.flatnonzero(groups == group)
        rated = []
        for member, estimate in zip(members, _estimates(table, members), strict=True):
            played = round(points[member].sum() + points[:, member].sum())
            won, lost = round(wins[member].sum()), round(wins[:, member].sum())
            in_cycle = int((circles == circles[member]).sum()) > 1
            rated.append(Rating(names[member], number, estimate, in_cycle, played, won, lost, played - won - lost))
        ratings += sorted(rated, key=lambda one: (-one.rating.value if one.rating else 0.0, one.agent))
    return ratings


def _points(table: Array, weights: Array, count: int) -> Array:
    """Points of i against j, shape (count, count), of games as rows (first, second, result, ...)."""
    points = np.zeros((count, count))
    first, second = table[:, 0].astype(int), table[:, 1].astype(int)
    np.add.at(points, (first, second), weights * table[:, 2])
    np.add.at(points, (second, first), weights * (1 - table[:, 2]))
    return points


def _estimates(table: Array, members: NDArray[np.intp]) -> list[Estimate | None]:
    count = len(members)
    if count < 2:
        return [None]
    table = table[np.isin(table[:, 0], members) & np.isin(table[:, 1], members)]
    table[:, :2] = np.searchsorted(members, table[:, :2])
    points = _points(table, table[:, 4], count)
    met = (points + points.T > 0).astype(np.float64)
    (values,) = strengths_of_many(points[None], met, tolerance=1e-8)
    seeds, seed_of_game = np.unique(table[:, 3], return_inverse=True)
    if len(seeds) < 2:
        return [Estimate(float(value)) for value in values]
    rng = np.random.default_rng(SEED)
    pairs = np.unique(np.sort(table[:, :2], axis=1), axis=0)
    replicates = []
    for _ in range(RESAMPLES):
        further = np.column_stack([pairs, rng.integers(2, size=len(pairs))])
        weights = rng.standard_exponential(len(seeds) + len(pairs))
        weights = np.concatenate([table[:, 4] * weights[: len(seeds)][seed_of_game], weights[len(seeds) :]])
        replicates.append(_points(np.concatenate([table[:, :3], further]), weights, count))
    of_each = strengths_of_many(np.array(replicates), met).T
    return [of_replicates(float(value), each) for value, each in zip(values, of_each, strict=True)]


def strengths_of_many(points: Array, met: Array | None = None, tolerance: float = 1e-4) -> Array:
    """Compute the strengths of many tables of points at once, in Elo points with mean 0, as choix does of one.

    They are the stationary distribution of a Markov chain whose rates depend on them (iterative Luce spectral ranking,
    Maystre & Grossglauser 2015). ``points`` of i against j have the shape (tables, agents, agents), the result (tables,
    agents); ``met`` is 1 for the pairs that the prior ties, by default all. ``tolerance`` is in natural-log units.
    """
    count = points.shape[-1]
    prior = ALPHA * (np.ones((count, count)) if met is None else met)
    strengths = np.zeros(points.shape[:2])
    open_ = np.arange(len(points))  # the tables whose strengths still change
    step = max(1, 2_000_000 // count**2)  # tables at a time, so that memory stays small
    for _ in range(100):
        before = strengths[open_]
        for start in range(0, len(open_), step):
            part = open_[start : start + step]
            weights = np.exp(strengths[part])
            weights *= count / weights.sum(axis=1, keepdims=True)  # the scale matters beside ALPHA
            rates = prior + points[part].swapaxes(1, 2) / (weights[:, :, None] + weights[:, None, :])
            rates[:, range(count), range(count)] = 0.0
            flow = rates.swapaxes(1, 2) - np.eye(count) * rates.sum(axis=2)[:, :, None]
            flow[:, -1] = 1.0  # one equation follows from the others; in its place the shares sum to 1
            shares = np.linalg.solve(flow, np.broadcast_to(np.eye(count)[-1][:, None], (len(part), count, 1)))[:, :, 0]
            logs = np.log(shares)
            strengths[part] = logs - logs.mean(axis=1, keepdims=True)
        change = np.abs(strengths[open_] - before).sum(axis=1)
        open_ = open_[change > tolerance * count]
        if not len(open_):
            return np.asarray(strengths * ELO, dtype=np.float64)
    raise RuntimeError("the strengths of a bootstrap did not converge in 100 iterations")
