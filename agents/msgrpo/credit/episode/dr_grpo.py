"""Dr.GRPO: the group's mean is subtracted, and nothing is divided by (arXiv 2503.20783).

``A_i = R_i - mean_g R`` for all steps of episode i: dividing by the standard deviation would weigh the groups where
little differs the most. The other half of the method is its normaliser, responses times the longest response allowed,
which is ``loss_normalizer = "constant"``; the preset ``dr_grpo`` sets both.
"""

from typing import ClassVar

import numpy as np
from pydantic import Field

from agents.msgrpo.credit.arithmetic import centred, within_groups
from agents.msgrpo.credit.batch import Batch, Credit
from agents.msgrpo.plugins import Shared, configured


@configured
class DrGRPO:
    """The return less the mean return of the group."""

    discount: float = Field(1.0, gt=0, le=1)
    """Discount per step in an episode's return."""

    needs: ClassVar[frozenset[str]] = frozenset()
    shared: ClassVar[Shared] = {"discount": "discount"}

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        return Credit.per_episode(batch, within_groups(batch, batch.returns(self.discount), centred))
