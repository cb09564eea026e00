"""Returns with luck taken out: ``R_i - beta_i L_i``, with coefficients that no episode chooses for itself.

The luck ``L`` of an episode has mean zero whatever the player does, so ``R - beta L`` has the mean of ``R`` for every
fixed ``beta``. With ``beta = 1`` an optimal player's corrected return is its start value exactly; a weak player rarely
gets what the values promise it, and for it a smaller coefficient leaves less noise. There is **one rule for
everybody**, so that nobody chooses by looking at the result: the coefficient is always fitted, by cross-fitting.

* Episodes are in ten folds by the order of their seeds. An episode's coefficient comes from the other folds, so that
  it is independent of the episode's own luck, and the corrected mean is unbiased.
* It is that of the regression of ``R - V(s_0)`` on ``L``: what the start promised is no luck and only noise here. For
  an optimal player the two are equal, and the coefficient is 1 exactly.
* It is held between 0 and 1: few episodes of a weak player may suggest anything.

With fewer than :data:`LEAST` episodes there is no correction.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from agents.common.intervals import Array

LEAST = 20  # episodes; fewer than two in a fold fit no coefficient that is worth having
FOLDS = 10


class Corrected(NamedTuple):
    """The returns of one agent in one scenario with luck taken out."""

    values: Array  # (episodes,) R - beta L
    ends: tuple[float, float] | None
    """The least and the largest that one more episode may have, besides the values seen.

    ``None`` where nobody knows: the game states no range of returns, and has no chance or all episodes went alike.
    """
    beta: float | None  # the mean coefficient of the folds; None in a game without chance
    sd_ratio: float | None
    """The standard deviation of ``values - V(s_0)`` over that of ``R - V(s_0)``; ``None`` where the latter is 0."""


def corrected(returns: Array, start: Array, luck: Array, possible: Sequence[float] = ()) -> Corrected | None:
    """Take luck out of returns.

    Args:
        returns, start, luck: of the episodes in the order of their seeds, shape (episodes,): R, V(s_0) and L.
        possible: the lowest and the highest return that the game states; empty where it states none.

    Returns:
        ``None`` with fewer than :data:`LEAST` episodes.
    """
    if len(returns) < LEAST:
        return None
    against_start = returns - start
    betas = cross_fitted(against_start, luck)
    values = returns - betas * luck
    gaps = values - start
    plain = float(against_start.std())
    beta, begin = float(betas.mean()), float(start.mean())
    lowest, highest = begin + float(gaps.min()), begin + max(0.0, float(gaps.max()))
    if possible:
        # One more episode may throw everything away; or be played without a mistake, and have all the luck that the
        # coefficient leaves in: R - beta L = V + (1 - beta) (R - V) where no action cost anything.
        lowest = min(lowest, possible[0])
        highest = max(highest, begin + (1 - beta) * (possible[1] - begin))
    known = possible or float(np.ptp(gaps)) > 1e-9
    ends = (lowest, highest) if known else None
    return Corrected(values, ends, beta, float(gaps.std()) / plain if plain > 1e-12 else None)


def cross_fitted(outcome: Array, luck: Array) -> Array:
    """Every episode's coefficient, (episodes,), fitted on the folds that it isn't in."""
    fold = np.arange(len(luck)) % FOLDS
    betas = np.empty(FOLDS)
    for number in range(FOLDS):
        others = fold != number
        off = luck[others] - luck[others].mean()
        spread = float(off @ off)
        betas[number] = float(off @ outcome[others]) / spread if spread > 1e-12 else 0.0
    # 1 + 1e-16 is 1: an optimal player's corrected return is its start value to the last digit
    betas = np.where(np.abs(betas - 1) < 1e-9, 1.0, betas).clip(0.0, 1.0)
    return betas[fold]
