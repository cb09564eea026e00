"""PF-PPO: the batch is resampled by what its episodes returned (policy filtration, arXiv 2409.06957)."""

from typing import Literal

import numpy as np
from pydantic import Field

from agents.msgrpo import Drawn, Ints, configured
from agents.msgrpo.credit import Batch, Credit, Floats, same


@configured
class PFPPO:
    """As many episodes as the batch has, drawn from it with replacement; the advantages are kept as they are.

    The weights look at the returns themselves and not at advantages. ``pow``: ``|R|^power``. ``max_min``: 1 for
    episodes of the batch's highest or lowest return, else 0. ``max_random``: 0.4 for those of the highest, 0.1 for the
    others. 1e-8 is added to each, so that no batch is without weight.
    """

    method: Literal["pow", "max_min", "max_random"] = "pow"
    """How a return becomes a weight."""
    power: float = Field(2.0, ge=0)
    """The exponent of pow."""
    resample_all: bool = True
    """Draw as many episodes as there are, as in the paper; otherwise episodes_drawn of them."""

    def draw(self, batch: Batch, credit: Credit, m: int, rng: np.random.Generator) -> Drawn:
        if not credit.draw_weight.any():  # no episode has an advantage: whatever is drawn, there is nothing to learn
            return Drawn.plain(np.empty(0, dtype=np.int64))
        weights = self.weights(batch.returns())
        drawn: Ints = rng.choice(len(batch), size=len(batch) if self.resample_all else m, p=weights / weights.sum())
        return Drawn.plain(np.sort(drawn))

    def weights(self, returns: Floats) -> Floats:
        """Return (N,) what the episodes are drawn by, from (N,) returns."""
        if self.method == "pow":
            return np.abs(returns) ** self.power + 1e-8
        highest = same(returns, returns.max())
        if self.method == "max_min":
            return np.where(highest | same(returns, returns.min()), 1.0, 0.0) + 1e-8
        return np.where(highest, 0.4, 0.1) + 1e-8
