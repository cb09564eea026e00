"""MinPRO: a token counts by the smallest ratio of the tokens before it (arXiv 2601.22718).

The ratio of a token's whole prefix is a product and grows or vanishes with its length; the smallest of its factors
takes its place. The paper's exact objective was not found. Our reading: ``w_k = sg(min_{j<k} rho_j)`` within a
response, 1 for its first token, and a token's loss is ``w_k`` times PPO's.
"""

import torch
from pydantic import Field
from torch import Tensor

from agents.msgrpo.plugins import configured
from agents.msgrpo.surrogates.tokens import PPO, Tokens


@configured
class MinPRO(PPO):
    """PPO's loss, weighted by the smallest ratio of the response's earlier tokens."""

    weight_low: float = Field(0.0, ge=0, le=1)
    """The least that a weight may be; others have 0.2."""
    weight_high: float | None = Field(None, ge=1)
    """The most that a weight may be; others have 5."""

    def terms(self, tokens: Tokens) -> Tensor:
        return self._weights(tokens) * super().terms(tokens)

    @torch.no_grad()
    def _weights(self, tokens: Tokens) -> Tensor:
        """(n,) ``w_k`` of every token."""
        ratio, longest = tokens.log_ratio().exp(), int(tokens.lengths.max())
        used = torch.arange(longest, device=ratio.device) < tokens.lengths[:, None]  # (r, longest)
        table = ratio.new_ones(used.shape)
        table[used] = ratio
        smallest = table.cummin(-1).values
        before = torch.cat([torch.ones_like(smallest[:, :1]), smallest[:, :-1]], -1)[used]
        return before.clamp(self.weight_low, self.weight_high)
