"""Many thousand episodes of one round at once, with their luck, for tests of coverage."""

from typing import NamedTuple

import numpy as np


class Rounds(NamedTuple):
    """Columns of episodes, shape (runs, episodes): 1 is won with the chance ``start``, or less after a mistake."""

    returns: np.ndarray
    start: np.ndarray
    luck: np.ndarray
    variance: np.ndarray
    blind: np.ndarray  # the chance of play that doesn't read


BLIND = 0.4
"""The share of a start's worth that blind play gets."""


def rounds(skill: float, runs: int, episodes: int, rng: np.random.Generator) -> tuple[float, Rounds]:
    """Return the true normalised score of a player that makes no mistake with chance ``skill``, and its episodes.

    Starts are worth 0.05 to 0.95. A mistake, after which a tenth is left, has no luck in it: it is the player's own.
    """
    start = rng.uniform(0.05, 0.95, (runs, episodes))
    chance = np.where(rng.random(start.shape) < skill, start, 0.1 * start)
    returns = (rng.random(start.shape) < chance).astype(float)
    true = (skill + 0.1 * (1 - skill) - BLIND) / (1 - BLIND)
    return true, Rounds(returns, start, returns - chance, chance * (1 - chance), BLIND * start)
