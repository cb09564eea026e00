"""NFT: likelihood training on successes, and on failures through an implicit policy of failing (arXiv 2505.18116).

With ``c`` 1 for an episode that succeeds and 0 for one that fails, and ``p`` the success rate of its group, a token's
loss is

``(1 - p) [ c (-log rho) + (1 - c) (-log max((1 - p rho) / (1 - p), 1)) ]``

as in NVlabs/NFT; ``rho`` is the token's ratio, ``p`` is clipped to 0.02 .. 0.98, and the gradient goes straight through
the maximum. At ``rho = 1`` its gradient is that of REINFORCE with the advantage ``c - p``. Groups in which all episodes
succeed, or none, have no loss; they still count in the normaliser's Z.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field
from torch import Tensor

from agents.msgrpo import PlainSurrogate, Tokens, configured
from agents.msgrpo.credit import Floats

if TYPE_CHECKING:
    from agents.msgrpo import TokenRow
    from agents.msgrpo.credit import Batch


@configured
class NFT(PlainSurrogate):
    """Likelihood training with labels of its own: the credit's advantages only decide what is drawn.

    Nothing is clipped in the sense of the log: the maximum changes a gradient's size and never takes it away.
    """

    labels: Literal["success", "return"] = "success"
    """What c is: whether the game calls the episode a success, or, for graded returns, ``(R - min) / (max - min)``
    over its group (our reading)."""
    floor: float = Field(0.02, gt=0, lt=0.5)
    """The group's rate p is clipped to floor .. 1 - floor."""

    def row_data(
        self, rows: "Sequence[TokenRow]", batch: "Batch", log_ratios: Sequence[Tensor] | None
    ) -> Mapping[str, Floats]:
        """Return ``label`` c, ``rate`` p and ``weight`` of each row: its draw's scale, 0 in groups without a
        difference."""
        labels, rates = self._labels(batch), np.zeros(len(batch))
        for members in batch.groups.values():
            rates[members] = labels[members].mean()
        own = [row.trajectory for row in rows]
        some = (rates[own] > 0) & (rates[own] < 1)
        return {
            "label": labels[own],
            "rate": rates[own].clip(self.floor, 1 - self.floor),
            "weight": np.array([row.scale for row in rows]) * some,
        }

    def terms(self, tokens: Tokens) -> Tensor:
        label, rate, weight = (tokens.spread(tokens.data[name]) for name in ("label", "rate", "weight"))
        log_ratio = tokens.log_ratio()
        failing = (1 - rate * log_ratio.exp()) / (1 - rate)
        floored = failing + (failing.clamp(min=1) - failing).detach()
        return weight * (1 - rate) * (-label * log_ratio - (1 - label) * floored.log())

    def _labels(self, batch: "Batch") -> Floats:
        """Return (N,) c of every trajectory."""
        if self.labels == "success":
            return np.array([float(each.success) for each in batch.trajectories])
        returns, labels = batch.returns(), np.zeros(len(batch))
        for members in batch.groups.values():
            own = returns[members]
            width = own.max() - own.min()
            labels[members] = (own - own.min()) / width if width else 0.0
        return labels
