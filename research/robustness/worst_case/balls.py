"""Balls of chances around those of a game's rules, and the worst chances that they hold.

``B(p)`` is ``{q: sum |q - p| / 2 <= radius}`` for the ball ``tv``, ``{q: KL(q || p) <= radius}`` in nats for ``kl``,
both of chances of the outcomes that the rules list: none is added, so a round without chance stays as it is.
"""

from collections.abc import Callable, Mapping

import numpy as np

from textgames.solving import Floats

Ball = Callable[[Floats, Floats, float], Floats]
"""``(chances, worths, radius) -> the chances of the ball with the lowest mean worth``; all but the radius are (rounds,
outcomes), and chances are 0 beyond the outcomes of a round."""


def total_variation(chances: Floats, worths: Floats, radius: float) -> Floats:
    """Take the radius from the best outcomes, in their order, and give it to the worst one."""
    order = np.argsort(np.where(chances > 0, -worths, np.inf), axis=1, kind="stable")
    sorted_chances = np.take_along_axis(chances, order, axis=1)
    before = np.cumsum(sorted_chances, axis=1) - sorted_chances
    moved = np.clip(radius - before, 0, sorted_chances)
    found = np.empty_like(chances)
    np.put_along_axis(found, order, sorted_chances - moved, axis=1)
    worst = np.argmin(np.where(chances > 0, worths, np.inf), axis=1)
    found[np.arange(len(found)), worst] += moved.sum(axis=1)
    return found


def relative_entropy(chances: Floats, worths: Floats, radius: float) -> Floats:
    """Tilt the chances, ``q ~ p exp(-worth / beta)``, as far as the radius lets: the solution of the dual in one
    variable ``max over beta of -beta log E_p[exp(-worth / beta)] - beta radius``."""
    lowest = np.where(chances > 0, worths, np.inf).min(axis=1, keepdims=True)
    above = np.where(chances > 0, worths - lowest, 0.0)
    spread = above.max(axis=1, keepdims=True)
    above = np.divide(above, spread, out=np.zeros_like(above), where=spread > 0)
    if radius == 0:
        return chances
    low, high = np.full_like(spread, -40.0), np.full_like(spread, 40.0)  # of the logarithm of spread / beta

    def tilted(logarithm: Floats) -> Floats:
        found = chances * np.exp(-np.exp(logarithm) * above)
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    for _ in range(40):
        middle = (low + high) / 2
        inside = divergence(tilted(middle), chances)[:, None] <= radius
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return tilted(low)


def divergence(found: Floats, chances: Floats) -> Floats:
    """Return ``KL(found || chances)`` of every round, (rounds,)."""
    ratio = np.divide(found, chances, out=np.ones_like(found), where=found > 0)
    return np.asarray((found * np.log(ratio)).sum(axis=1))


def distance(found: Floats, chances: Floats) -> Floats:
    """Return the total variation of every round, (rounds,)."""
    return np.asarray(np.abs(found - chances).sum(axis=1) / 2)


BALLS: Mapping[str, Ball] = {"tv": total_variation, "kl": relative_entropy}
DISTANCES = {"tv": distance, "kl": divergence}


def towards(others: Floats, chances: Floats, ball: str, radius: float) -> Floats:
    """Return the chances of the ball that are farthest on the way from one round's own to others, (outcomes,)."""
    low, high = 0.0, 1.0
    for _ in range(50):
        share = (low + high) / 2
        inside = DISTANCES[ball]((share * others + (1 - share) * chances)[None], chances[None])[0] <= radius
        low, high = (share, high) if inside else (low, share)
    return low * others + (1 - low) * chances
