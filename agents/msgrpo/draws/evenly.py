"""Draws that don't look at how large the advantages are: what AAW is compared with."""

import numpy as np

from agents.msgrpo.credit.batch import Batch, Credit
from agents.msgrpo.draws import Drawn
from agents.msgrpo.draws.sampling import sample_episodes


class Uniform:
    """Any ``m`` episodes, equally likely, without replacement."""

    def draw(self, batch: Batch, credit: Credit, m: int, rng: np.random.Generator) -> Drawn:
        return Drawn.plain(sample_episodes(credit.draw_weight, m, rng, "uniform"))


class UniformNonzero:
    """Any ``m`` of the episodes that have an advantage at all, equally likely, without replacement.

    It tells apart what AAW gains by leaving out episodes without signal from what it gains by its weights.
    """

    def draw(self, batch: Batch, credit: Credit, m: int, rng: np.random.Generator) -> Drawn:
        some = np.flatnonzero(credit.draw_weight)
        drawn = rng.choice(some, size=min(m, len(some)), replace=False) if len(some) else some
        return Drawn.plain(np.sort(drawn).astype(np.int64))


class Everything:
    """All episodes; nothing is drawn."""

    def draw(self, batch: Batch, credit: Credit, m: int, rng: np.random.Generator) -> Drawn:
        return Drawn.plain(sample_episodes(credit.draw_weight, m, rng, "off"))
