"""DAPO's filter without its refill: groups in which all returns are equal teach nothing (arXiv 2503.14476)."""

import numpy as np

from agents.msgrpo.credit.batch import Batch
from agents.msgrpo.filters import Kept
from agents.msgrpo.filters.spread import spreads


class Nonzero:
    """Keep the groups whose returns differ.

    AAW would not draw their episodes either; draws that don't look at advantages would.
    """

    def keep(self, batch: Batch) -> Kept:
        labels = list(batch.groups)
        return Kept.of_groups(batch, [labels[g] for g in np.flatnonzero(spreads(batch)).tolist()])
