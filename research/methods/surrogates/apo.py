"""APO: successes are held less to the reference the harder they are, long failures count more (arXiv 2506.21655).

Both of its parts need to know the group and act on single rows, so they are one surrogate and no method of credit: the
first weighs a term of the loss that credit doesn't know, the second changes an advantage too little to matter for the
draw.

* A token of positive advantage has the KL term times ``1 - exp(-e p_g)``, ``p_g`` being the success rate of its group;
  where ``p_g`` is 0 or 1, and for all other tokens, it counts in full.
* Failures that are longer than the mean success of their group have a negative advantage multiplied by
  ``2 - 1.00001^-x`` for x tokens more: 0.1 percent for the first hundred. Groups without a success are left alone.

As in the authors' code (Indolent-Kawhi/View-R1). Our readings: an episode's length is the number of its response
tokens, and the run's normaliser divides the KL term.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from agents.msgrpo import PPO, Tokens, configured
from agents.msgrpo.credit import Floats

if TYPE_CHECKING:
    from agents.msgrpo import TokenRow
    from agents.msgrpo.credit import Batch


@configured
class APO(PPO):
    """PPO with a KL term of its own, on top of the run's; the k3 estimate."""

    kl_coefficient: float = Field(1e-3, ge=0)
    """Coefficient of the KL term that is weighed by the success rate."""
    length_base: float = Field(1.00001, ge=1)
    """The base of the factor of long failures; 1 leaves them as they are."""

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"reference"})

    def row_data(
        self, rows: "Sequence[TokenRow]", batch: "Batch", log_ratios: Sequence[Tensor] | None
    ) -> Mapping[str, Floats]:
        """Return ``kl_weight`` of a row's tokens of positive advantage, ``length_factor`` of those of negative
        advantage."""
        weights, factors = np.ones(len(batch)), np.ones(len(batch))
        for members in batch.groups.values():
            group = [batch.trajectories[i] for i in members]
            lengths = [each.tokens for each in group if each.success]
            rate = len(lengths) / len(group)
            if 0 < rate < 1:
                weights[members] = 1 - math.exp(-math.e * rate)
                excess = np.array([each.tokens - float(np.mean(lengths)) for each in group])
                longer = np.array([not each.success for each in group]) & (excess > 0)
                factors[members] = np.where(longer, 2 - self.length_base**-excess, 1.0)
        own = [row.trajectory for row in rows]
        return {"kl_weight": weights[own], "length_factor": factors[own]}

    def terms(self, tokens: Tokens) -> Tensor:
        if tokens.ref_logprobs is None:
            raise ValueError("apo needs the reference model's log-probabilities")
        log_r = tokens.ref_logprobs - tokens.logprobs
        kl = log_r.exp() - 1 - log_r
        weight = torch.where(tokens.advantages > 0, tokens.spread(tokens.data["kl_weight"]), 1.0)
        factor = torch.where(tokens.advantages < 0, tokens.spread(tokens.data["length_factor"]), 1.0)
        blamed = tokens._replace(advantages=factor * tokens.advantages)
        return super().terms(blamed) + self.kl_coefficient * weight * kl
