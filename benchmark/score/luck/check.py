"""Luck as a check: an honest player's luck sums to a number whose spread is known.

Every term of luck has mean zero and a known variance, given what happened before, so that the sum over an entry
divided by the root of the summed variances, ``z``, is close to a standard normal number for whoever can't see the
coming draw (a central limit theorem for martingales). A player that reads the random numbers, plays episodes again
until they end well, or leaves out unlucky ones has more luck than that.
"""

from math import sqrt
from typing import TypedDict

import numpy as np

from benchmark.score.statistics import Array

SUSPICIOUS = 1e-4
"""An entry is refused where the luck of a scenario has a smaller corrected probability than this."""


class LuckCheck(TypedDict):
    """How much luck an agent had in one scenario."""

    z: float  # the sum of luck in standard deviations
    p: float  # one-sided: how likely an honest player is to have at least so much


def luck_check(luck: Array, variance: Array) -> LuckCheck | None:
    """The check of episodes' luck and variances, both (episodes,); ``None`` where there was no chance at all."""
    total = float(np.sum(variance))
    if total <= 0.0:
        return None
    from scipy.special import ndtr

    z = float(np.sum(luck)) / sqrt(total)
    return LuckCheck(z=z, p=float(ndtr(-z)))
