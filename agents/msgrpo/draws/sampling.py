"""Absolute-advantage-weighted (AAW) episode sampling: which episodes the update sees.

An episode is drawn with probability ``|A_i| / sum_j |A_j|`` (arXiv 2508.10839, section 4). The paper leaves open
whether draws are with replacement; without is the default here, and the others are options.
"""

import numpy as np
import numpy.typing as npt

from agents.msgrpo.errors import ConfigError

Ints = npt.NDArray[np.int64]

MODES = ("aaw", "aaw_replacement", "unbiased", "uniform", "uniform_nonzero", "off")


def sample_episodes(advantages: npt.ArrayLike, m: int, rng: np.random.Generator, mode: str = "aaw") -> Ints:
    """Draw the episodes of an update.

    Args:
        advantages: (N,) one per episode.
        m: how many to draw.
        rng: the draw's randomness.
        mode: ``"aaw"``: weighted by ``|A|``, without replacement: the ``m`` largest of ``log|A_i| + Gumbel noise``,
            which is the same as drawing one after the other from those that are left;
            ``"aaw_replacement"`` and ``"unbiased"``: ``m`` independent weighted draws;
            ``"uniform"``: ``m`` of all, equally likely, without replacement; ``"uniform_nonzero"``: of those whose
            advantage isn't 0; ``"off"``: all.

    Returns:
        Episode indices in ascending order, repeated where drawn more than once. Empty when all advantages are zero:
        there is nothing to learn and the update is to be skipped. Without replacement an episode of zero advantage is
        never drawn, so there may be fewer than ``m``.

    Raises:
        ValueError: NaN or infinite advantages, ``m < 1``, an unknown mode.
    """
    values = np.abs(np.asarray(advantages, dtype=np.float64))
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(f"advantages must be finite and one per episode, got {np.asarray(advantages)!r}")
    if m < 1:
        raise ValueError(f"m = {m} episodes can't be drawn; accepted: 1 or more")
    if mode not in MODES:
        raise ConfigError(f"mode = {mode!r} can't be used; accepted: {', '.join(MODES)}")
    total = values.sum()
    if total == 0:
        return np.empty(0, dtype=np.int64)
    if mode == "off":
        return np.arange(len(values))
    if mode == "uniform":
        drawn = rng.choice(len(values), size=min(m, len(values)), replace=False)
    elif mode == "uniform_nonzero":
        some = np.flatnonzero(values)
        drawn = rng.choice(some, size=min(m, len(some)), replace=False)
    elif mode == "aaw":
        with np.errstate(divide="ignore"):
            keys = np.log(values) + rng.gumbel(size=len(values))
        drawn = np.argsort(-keys)[: min(m, int(np.count_nonzero(values)))]
    else:
        drawn = rng.choice(len(values), size=m, replace=True, p=values / total)
    return np.sort(drawn).astype(np.int64)
