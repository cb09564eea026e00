"""RLOO: an episode is compared with the other episodes of its group (arXiv 2402.14740).

``A_i = R_i - mean_{j != i} R_j = n / (n - 1) (R_i - mean_g R)`` for all steps of episode i, without a standard
deviation. The baseline doesn't contain the episode's own return, so it leaves the gradient unbiased. An episode that is
alone in its group has no baseline: ``A_i = R_i``. As in verl's ``core_algos.py``.
"""

from typing import ClassVar

import numpy as np
from pydantic import Field

from agents.msgrpo.credit.arithmetic import less_others, within_groups
from agents.msgrpo.credit.batch import Batch, Credit
from agents.msgrpo.plugins import Shared, configured


@configured
class RLOO:
    """The return less the mean return of the group's other episodes."""

    discount: float = Field(1.0, gt=0, le=1)
    """Discount per step in an episode's return."""

    needs: ClassVar[frozenset[str]] = frozenset()
    shared: ClassVar[Shared] = {"discount": "discount"}

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        return Credit.per_episode(batch, within_groups(batch, batch.returns(self.discount), less_others))
