"""Draw rules: which episodes the update sees, and how much each of them counts.

The default is absolute-advantage-weighted (AAW): an episode is drawn with probability ``d_i / sum_j d_j`` (arXiv
2508.10839, section 4), and the weight ``d_i`` is ``|A_i|`` if all steps of an episode have one advantage, else the mean
of ``|A_it|`` over the steps, which is our reading. The paper leaves open whether draws are with replacement.
"""

from typing import Literal, NamedTuple, Protocol, get_args

import numpy as np
import numpy.typing as npt

from agents.msgrpo.credit.batch import Batch, Credit, Floats, flattened
from agents.msgrpo.errors import ConfigError
from agents.msgrpo.plugins import Method, Registry, Variant, configured

Ints = npt.NDArray[np.int64]


class Drawn(NamedTuple):
    """The episodes of an update: ascending ``indices`` (M,), and the factors ``scale`` (M,) of their advantages."""

    indices: Ints
    scale: Floats

    @classmethod
    def plain(cls, indices: Ints) -> "Drawn":
        """Draws whose advantages are kept as they are."""
        return cls(indices, np.ones(len(indices)))


class DrawRule(Method, Protocol):
    """A rule of drawing episodes."""

    def draw(self, batch: Batch, credit: Credit, m: int, rng: np.random.Generator) -> Drawn:
        """Draw ``m`` episodes of a batch of N; a rule may draw fewer, or all."""


Mode = Literal["aaw", "aaw_replacement", "unbiased", "largest", "balanced", "uniform", "uniform_nonzero", "off"]
MODES: tuple[str, ...] = get_args(Mode)


@configured
class ByAdvantage:
    """Episodes drawn by the size of their advantages, or evenly.

    In the mode ``unbiased`` advantages are multiplied by ``mean_j d_j / d_i``, so that the mean over the draws is an
    unbiased estimate of the mean over all N episodes.
    """

    mode: Mode = "aaw"
    """Weighted without replacement (aaw), weighted with replacement (aaw_replacement and unbiased), those that weigh
    most (largest), half of them among those that did better and half among those that did worse (balanced), evenly
    without replacement among all (uniform) or among those that have an advantage (uniform_nonzero), or all of them
    (off). uniform_nonzero tells apart what aaw gains by leaving out episodes without signal from what its weights gain;
    largest has the weights without the luck, balanced the leaving out without the weights."""

    def draw(self, batch: Batch, credit: Credit, m: int, rng: np.random.Generator) -> Drawn:
        # below 0 if the update makes more of an episode less likely
        signs = [-1.0 if float(flattened(each).sum()) < 0 else 1.0 for each in credit.advantages]
        drawn = sample_episodes(credit.draw_weight * signs, m, rng, self.mode)
        if self.mode == "unbiased" and len(drawn):
            return Drawn(drawn, credit.draw_weight.mean() / credit.draw_weight[drawn])
        return Drawn.plain(drawn)


def sample_episodes(advantages: npt.ArrayLike, m: int, rng: np.random.Generator, mode: str = "aaw") -> Ints:
    """Draw ``m`` episodes for the update, by (N,) advantages, in a mode of :class:`ByAdvantage`.

    Return ascending indices; none if all advantages are zero, and fewer than ``m`` if too few have one. ``"aaw"`` takes
    the ``m`` largest of ``log|A_i| + Gumbel noise``, which is the same as drawing one after the other from those that
    are left; ``"balanced"`` takes more above or below 0 if there are too few of the other.
    """
    signed = np.asarray(advantages, dtype=np.float64)
    values = np.abs(signed)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(f"advantages must be finite and one per episode, got {np.asarray(advantages)!r}")
    if not isinstance(m, int | np.integer) or m < 1:
        raise ValueError(f"m = {m!r} episodes can't be drawn; accepted: a whole number from 1")
    if mode not in MODES:
        raise ConfigError(f"mode must be one of {', '.join(MODES)}, got {mode!r}")
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
    elif mode == "balanced":
        above, below = rng.permutation(np.flatnonzero(signed > 0)), rng.permutation(np.flatnonzero(signed < 0))
        ups = min(len(above), max(m - len(below), (m + int(rng.integers(2))) // 2))
        drawn = np.concatenate([above[:ups], below[: m - ups]])
    elif mode == "largest":
        shuffled = rng.permutation(len(values))
        drawn = shuffled[np.argsort(-values[shuffled], kind="stable")][: min(m, int(np.count_nonzero(values)))]
    elif mode == "aaw":
        with np.errstate(divide="ignore"):
            keys = np.log(values) + rng.gumbel(size=len(values))
        drawn = np.argsort(-keys)[: min(m, int(np.count_nonzero(values)))]
    else:
        drawn = rng.choice(len(values), size=m, replace=True, p=values / total)
    return np.sort(drawn).astype(np.int64)


DRAWS: Registry[DrawRule] = Registry(
    "draw",
    {
        "aaw": "agents.msgrpo.draws:ByAdvantage",
        **{mode: Variant("aaw", {"mode": mode}) for mode in MODES if mode != "aaw"},
    },
    setting="episode_sampling",
)

register_draw = DRAWS.register


def effective_sample_size(weights: Floats) -> float:
    """Return ``(sum w)^2 / sum w^2`` of weights (N,): the equally weighted episodes that they are worth; 0 for none."""
    squares = float(np.square(weights).sum())
    return float(weights.sum()) ** 2 / squares if squares else 0.0
