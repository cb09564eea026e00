"""StarPO-S: only the groups whose returns differ most (RAGEN, arXiv 2504.20073)."""

from pydantic import Field

from agents.msgrpo.credit.batch import Batch
from agents.msgrpo.filters import Kept
from agents.msgrpo.filters.spread import largest_first, spreads
from agents.msgrpo.plugins import configured


@configured
class StarPOS:
    """Keep a share of the groups, those of the largest ``std_g``, at least one.

    RAGEN trains with ``clip_high = 0.28`` and without a KL term besides.
    """

    share: float = Field(0.25, gt=0, le=1)
    """How many of the groups stay, rounded down."""

    def keep(self, batch: Batch) -> Kept:
        labels = list(batch.groups)
        count = max(1, int(self.share * len(labels) + 1e-9))
        return Kept.of_groups(batch, [labels[g] for g in largest_first(spreads(batch))[:count]])
