"""The clipped surrogate of PPO, token by token (arXiv 1707.06347; arXiv 2508.10839, section 4)."""

from typing import ClassVar

from pydantic import Field
from torch import Tensor

from agents.msgrpo.plugins import Shared, configured
from agents.msgrpo.surrogates.tokens import PlainSurrogate, Tokens, ppo_clipped, ppo_terms


@configured
class PPO(PlainSurrogate):
    """``-min(rho A, clip(rho, 1 - clip_low, 1 + clip_high) A)`` with ``rho = pi_theta / pi_old`` of the token."""

    clip_low: float = Field(0.2, ge=0, le=1)
    """The ratio is clipped below at 1 - clip_low, where that lowers the objective."""
    clip_high: float = Field(0.2, ge=0)
    """The ratio is clipped above at 1 + clip_high, where that lowers the objective."""

    shared: ClassVar[Shared] = {"clip_low": "clip_low", "clip_high": "clip_high"}

    def terms(self, tokens: Tokens) -> Tensor:
        return ppo_terms(tokens.log_ratio().exp(), tokens.advantages, self.clip_low, self.clip_high)

    def clipped(self, tokens: Tokens) -> tuple[Tensor, Tensor]:
        return ppo_clipped(tokens.log_ratio().exp(), tokens.advantages, self.clip_low, self.clip_high)
