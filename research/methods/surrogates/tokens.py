"""Surrogates of a response's tokens alone: SAPO, MinPRO, ATPO and direct advantage optimisation."""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from agents.msgrpo import CISPO, GSPO, PlainSurrogate, Tokens, configured


@configured
class SAPO(PlainSurrogate):
    """``-(4 / tau) sigmoid(tau (rho - 1)) A``, with another temperature tau for each sign of A.

    A smooth gate in place of the clip (arXiv 2511.20347): the gradient's weight is ``4 sigma (1 - sigma) rho``. The
    paper averages over each response first: ``loss_normalizer = "response"``.
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


@configured
class MinPRO(CISPO):
    """CISPO's loss, the ratio of a token being multiplied by the smallest of the response's earlier ones.

    Off policy the right weight of a token is the ratio of its whole prefix, a product that grows or vanishes with its
    length; the smallest factor stands for all earlier ones (arXiv 2601.22718). Z is all response tokens.
    """

    @torch.no_grad()
    def ratios(self, tokens: Tokens) -> Tensor:
        ratio, longest = super().ratios(tokens), int(tokens.lengths.max())
        used = torch.arange(longest, device=ratio.device) < tokens.lengths[:, None]  # (r, longest)
        table = ratio.new_ones(used.shape)
        table[used] = ratio
        smallest = table.cummin(-1).values
        return ratio * torch.cat([torch.ones_like(smallest[:, :1]), smallest[:, :-1]], -1)[used]


@configured
class ATPO(GSPO):
    """GSPO with wider limits (AT2PO, arXiv 2601.04767)."""

    clip_low: float = Field(3e-3, ge=0, le=1)
    """The response's ratio is clipped below at 1 - clip_low, if that lowers the objective."""
    clip_high: float = Field(4e-3, ge=0)
    """The response's ratio is clipped above at 1 + clip_high, if that lowers the objective."""


@configured
class DirectAPO(PlainSurrogate):
    """Half the squared difference of ``A / beta`` and the log-ratio of a response to the reference model.

    Summed over the response's tokens (arXiv 2412.18279, equation 12). The minimum has ``pi_theta`` in proportion to
    ``pi_ref exp(A / beta)``. Each token carries an equal share: with ``loss_normalizer = "step"`` the loss is the mean
    over responses. Our reading: pi_ref is the model at the start of the run, A the mean of the tokens' advantages.
    """

    beta: float = Field(0.02, gt=0)
    """How much likelihood an advantage is worth: the log-ratio aimed at is A / beta; the paper has 0.01 to 0.02."""

    needs: ClassVar[frozenset[str]] = frozenset({"reference"})

    def terms(self, tokens: Tokens) -> Tensor:
        if tokens.ref_logprobs is None:
            raise ValueError("the direct_apo loss needs the reference model's log-probabilities")
        lengths = tokens.lengths.to(tokens.logprobs.dtype)
        wanted = tokens.row_sum(tokens.advantages) / lengths / self.beta
        log_ratio = tokens.row_sum(tokens.logprobs - tokens.ref_logprobs)
        return tokens.spread((wanted - log_ratio).square() / 2 / lengths)
