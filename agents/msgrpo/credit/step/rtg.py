"""REINFORCE with returns-to-go and a baseline of its own for every time step (Williams, 1992; our reading).

``A_it = G_it - b_t`` with ``G_it = sum_{u >= t} gamma^(u - t) r_iu``: a step is not credited with what was paid before
it. ``b_t`` is the mean of ``G_jt`` over the other episodes j of the group that are still alive at t, and 0 where there
are none. Leaving out the own return keeps the gradient unbiased; a mean over all m of them would shrink ``A`` by
``(m - 1) / m``.

With ``scale = "std"`` the difference is also divided by the sample standard deviation of the ``G_jt`` of all episodes
that are alive at t, the own one included (our reading: without it the others may be all equal).
"""

from functools import partial
from typing import ClassVar

import numpy as np
from pydantic import Field

from agents.msgrpo.credit.arithmetic import Scale, less_others, steps_by_time, within
from agents.msgrpo.credit.batch import Batch, Credit, Floats
from agents.msgrpo.plugins import Shared, configured


@configured
class ReturnsToGo:
    """The return from a step on, less what the group's other episodes have from there on."""

    scale: Scale = "none"
    """Divides the difference: nothing, or the standard deviation of the group's returns-to-go at that time."""
    eps: float = Field(1e-6, gt=0)
    """Added to the standard deviation."""
    discount: float = Field(1.0, gt=0, le=1)
    """Discount per step."""

    needs: ClassVar[frozenset[str]] = frozenset()
    shared: ClassVar[Shared] = {"discount": "discount"}

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        how = less_others if self.scale == "none" else partial(_scaled, eps=self.eps)
        return Credit.of(within(steps_by_time(batch), batch.returns_to_go(self.discount), how))


def _scaled(values: Floats, eps: float) -> Floats:
    differences = less_others(values)
    return differences if len(values) == 1 else differences / (values.std(ddof=1) + eps)
