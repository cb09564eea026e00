"""Draw rules: which episodes the update sees, and how much each of them counts.

A rule is one class with ``draw(batch, credit, m, rng) -> Drawn`` and a name; ``register_draw("name")`` adds one from
outside and ``episode_sampling = "name"`` uses it. Its settings stand in ``[draw.name]``.
"""

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from agents.msgrpo.credit.batch import Batch, Credit, Floats
from agents.msgrpo.plugins import Registry, Variant

Ints = npt.NDArray[np.int64]


class Drawn(NamedTuple):
    """The episodes of an update.

    Attributes:
        indices: (M,) in ascending order, repeated where an episode was drawn more than once. Empty when there is
            nothing to learn from; the update is then skipped.
        scale: (M,) what the advantages of each draw are multiplied by.
    """

    indices: Ints
    scale: Floats

    @classmethod
    def plain(cls, indices: Ints) -> "Drawn":
        """Draws whose advantages are kept as they are."""
        return cls(indices, np.ones(len(indices)))

    def scaled(self, factors: Floats) -> "Drawn":
        """The same draws with each episode's advantages also multiplied by its factor, from (N,) factors."""
        return Drawn(self.indices, self.scale * factors[self.indices])


class DrawRule(Protocol):
    """A rule of drawing episodes."""

    def draw(self, batch: Batch, credit: Credit, m: int, rng: np.random.Generator) -> Drawn:
        """Draw ``m`` episodes of a batch of N; a rule may draw fewer, or all."""


DRAWS: Registry[DrawRule] = Registry(
    "draw",
    {
        "aaw": "agents.msgrpo.draws.sampling:ByAdvantage",
        "aaw_replacement": Variant("aaw", {"mode": "aaw_replacement"}),
        "unbiased": Variant("aaw", {"mode": "unbiased"}),
        "largest": Variant("aaw", {"mode": "largest"}),
        "balanced": Variant("aaw", {"mode": "balanced"}),
        "pf_ppo": "agents.msgrpo.draws.pf_ppo:PFPPO",
        "uniform": Variant("aaw", {"mode": "uniform"}),
        "uniform_nonzero": Variant("aaw", {"mode": "uniform_nonzero"}),
        "off": Variant("aaw", {"mode": "off"}),
    },
    setting="episode_sampling",
)

register_draw = DRAWS.register


def effective_sample_size(weights: Floats) -> float:
    """``(sum w)^2 / sum w^2`` of draw weights (N,): how many equally weighted episodes they are worth; 0 for none."""
    squares = float(np.square(weights).sum())
    return float(weights.sum()) ** 2 / squares if squares else 0.0
