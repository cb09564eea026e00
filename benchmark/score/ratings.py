"""Head-to-head strength: Bradley-Terry ratings of games between agents, by choix, on the Elo scale.

Model: ``P(a beats b) = 1 / (1 + 10^((rating_b - rating_a) / 400))`` (Bradley & Terry 1952). A draw is half a win for
each. A little regularisation keeps the rating of an agent finite that won, or lost, every game.
"""

from collections.abc import Sequence
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmark.score.statistics import CONFIDENCE, SEED, Estimate

ELO = 400 / log(10)
"""Elo points per natural-log unit of strength."""

ALPHA = 0.1
"""choix's regularisation: the weight of a weak prior under which all agents are equal."""

RESAMPLES = 400


class Game(NamedTuple):
    """One game: who played, and the first one's result: 1 won, 0 lost, 0.5 drawn."""

    first: str
    second: str
    result: float


class Rating(NamedTuple):
    """An agent's rating over its games; ratings have mean 0."""

    agent: str
    rating: Estimate
    games: int
    wins: int
    losses: int
    draws: int


def bradley_terry(games: Sequence[Game]) -> list[Rating]:
    """Rate everyone who played someone else, best first, with bootstrap intervals over games.

    Returns:
        Nothing when nobody met anybody else.
    """
    games = [game for game in games if game.first != game.second]
    names = sorted({name for game in games for name in game[:2]})
    if len(names) < 2:
        return []
    place = {name: index for index, name in enumerate(names)}
    table = np.array([(place[game.first], place[game.second], game.result) for game in games])
    values = _strengths(table, len(names))
    rng = np.random.default_rng(SEED)
    replicates = np.array(
        [_strengths(table[rng.integers(len(table), size=len(table))], len(names)) for _ in range(RESAMPLES)]
    )
    low, high = np.quantile(replicates, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=0)
    ratings = []
    for index, name in enumerate(names):
        results = [game.result if game.first == name else 1 - game.result for game in games if name in game[:2]]
        estimate = Estimate(float(values[index]), float(low[index]), float(high[index]))
        wins, losses = sum(r == 1 for r in results), sum(r == 0 for r in results)
        ratings.append(Rating(name, estimate, len(results), wins, losses, len(results) - wins - losses))
    return sorted(ratings, key=lambda rating: (-rating.rating.value, rating.agent))


def _strengths(table: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Elo-scaled strengths, shape (count,), mean 0, of games as rows (first, second, result)."""
    import choix

    wins = np.zeros((count, count))  # wins[i, j]: how often i beat j
    first, second = table[:, 0].astype(int), table[:, 1].astype(int)
    np.add.at(wins, (first, second), table[:, 2])
    np.add.at(wins, (second, first), 1 - table[:, 2])
    strengths = choix.ilsr_pairwise_dense(wins, alpha=ALPHA)
    return np.asarray((strengths - strengths.mean()) * ELO, dtype=np.float64)
