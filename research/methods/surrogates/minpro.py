"""MinPRO: CISPO whose ratio knows the tokens before, by the smallest of theirs (arXiv 2601.22718).

Off policy the right weight of a token is the ratio of its whole prefix, a product that grows or vanishes with its
length. The paper puts the smallest factor in the place of all earlier ones: a token's loss is

``-sg(clip(min_{j<k} rho_j rho_k, 1 - clip_low, 1 + clip_high)) A log pi``,

with ``rho_1`` alone for the first token. Its Z is all response tokens (``loss_normalizer = "token"``).

Our reading: the tokens before are those of the same step's response.
"""

import torch
from torch import Tensor

from agents.msgrpo import CISPO, Tokens, configured


@configured
class MinPRO(CISPO):
    """CISPO's loss, the ratio of a token being multiplied by the smallest of the response's earlier ones."""

    @torch.no_grad()
    def ratios(self, tokens: Tokens) -> Tensor:
        ratio, longest = super().ratios(tokens), int(tokens.lengths.max())
        used = torch.arange(longest, device=ratio.device) < tokens.lengths[:, None]  # (r, longest)
        table = ratio.new_ones(used.shape)
        table[used] = ratio
        smallest = table.cummin(-1).values
        return ratio * torch.cat([torch.ones_like(smallest[:, :1]), smallest[:, :-1]], -1)[used]
