"""GSPO: one ratio for a whole response instead of one per token (arXiv 2507.18071)."""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from agents.msgrpo.plugins import Shared, configured
from agents.msgrpo.surrogates.tokens import PlainSurrogate, Tokens, ppo_clipped, ppo_terms


@configured
class GSPO(PlainSurrogate):
    """PPO's clip on ``s = exp(mean_k log rho_k)``, the geometric mean of a response's token ratios.

    A token's ratio is ``sg(s) pi_k / sg(pi_k)``, so that tokens of one response may have different advantages (the
    paper's GSPO-token, equal to GSPO where they have one). A sequence is one step's response here: that is our reading
    for episodes of several steps. The paper averages over each response first: ``loss_normalizer = "response"``.
    """

    clip_low: float = Field(3e-4, ge=0, le=1)
    """The response's ratio is clipped below at 1 - clip_low, where that lowers the objective."""
    clip_high: float = Field(4e-4, ge=0)
    """The response's ratio is clipped above at 1 + clip_high, where that lowers the objective."""

    shared: ClassVar[Shared] = {"clip_low": "clip_low", "clip_high": "clip_high"}

    def terms(self, tokens: Tokens) -> Tensor:
        own_gradient = tokens.logprobs - tokens.logprobs.detach()  # 0, with the token's gradient
        ratio = (self._log_ratio(tokens) + own_gradient).exp()
        return ppo_terms(ratio, tokens.advantages, self.clip_low, self.clip_high)

    def clipped(self, tokens: Tokens) -> tuple[Tensor, Tensor]:
        return ppo_clipped(self._log_ratio(tokens).exp(), tokens.advantages, self.clip_low, self.clip_high)

    @torch.no_grad()
    def _log_ratio(self, tokens: Tokens) -> Tensor:
        """(n,) ``log s`` of each token's response."""
        return tokens.spread(tokens.row_sum(tokens.log_ratio()) / tokens.lengths)


@configured
class ATPO(GSPO):
    """GSPO with wider limits."""

    clip_low: float = Field(3e-3, ge=0, le=1)
    """The response's ratio is clipped below at 1 - clip_low, where that lowers the objective."""
    clip_high: float = Field(4e-3, ge=0)
    """The response's ratio is clipped above at 1 + clip_high, where that lowers the objective."""
