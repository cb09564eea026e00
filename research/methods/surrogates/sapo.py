"""SAPO: a smooth gate in place of the clip (arXiv 2511.20347)."""

import torch
from pydantic import Field
from torch import Tensor

from agents.msgrpo import PlainSurrogate, Tokens, configured


@configured
class SAPO(PlainSurrogate):
    """``-(4 / tau) sigmoid(tau (rho - 1)) A``, with another temperature tau for each sign of A.

    The gradient is the plain policy gradient's at ``rho = 1`` and fades on both sides: its weight is
    ``4 sigma (1 - sigma) rho``. Nothing is clipped, so the log's clip fractions are 0. The paper averages over each
    response first: ``loss_normalizer = "response"``.
    """

    tau_positive: float = Field(1.0, gt=0)
    """The temperature tau of tokens with a positive advantage."""
    tau_negative: float = Field(1.05, gt=0)
    """The temperature tau of the other tokens: a larger one lets their gradient fade faster."""

    def terms(self, tokens: Tokens) -> Tensor:
        tau = torch.full_like(tokens.advantages, self.tau_negative)
        tau[tokens.advantages > 0] = self.tau_positive
        gate = torch.sigmoid(tau * (tokens.log_ratio().exp() - 1))
        return -4 / tau * gate * tokens.advantages
