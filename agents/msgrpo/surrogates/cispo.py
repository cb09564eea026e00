"""CISPO: the importance weight is clipped, and every token keeps its gradient (arXiv 2506.13585)."""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from agents.msgrpo.plugins import Shared, configured
from agents.msgrpo.surrogates.tokens import PlainSurrogate, Tokens


@configured
class CISPO(PlainSurrogate):
    """``-sg(clip(rho, 1 - clip_low, 1 + clip_high)) A log pi``."""

    clip_low: float = Field(0.2, ge=0, le=1)
    """The weight is at least 1 - clip_low."""
    clip_high: float = Field(0.2, ge=0)
    """The weight is at most 1 + clip_high."""
    cap: float | None = Field(None, gt=0)
    """The largest weight, without a smallest one, as in TRL; it takes the place of clip_low and clip_high."""

    shared: ClassVar[Shared] = {"clip_low": "clip_low", "clip_high": "clip_high"}

    def terms(self, tokens: Tokens) -> Tensor:
        return -self.ratios(tokens).clamp(*self._limits) * tokens.advantages * tokens.logprobs

    @torch.no_grad()
    def clipped(self, tokens: Tokens) -> tuple[Tensor, Tensor]:
        """Which tokens have another weight than their ratio: it is clipped whatever the sign of the advantage."""
        ratio, (low, high) = self.ratios(tokens), self._limits
        some = tokens.advantages != 0
        return (ratio < low) & some, (ratio > high) & some

    @torch.no_grad()
    def ratios(self, tokens: Tokens) -> Tensor:
        """(n,) what is clipped to be the tokens' weights."""
        return tokens.log_ratio().exp()

    @property
    def _limits(self) -> tuple[float, float]:
        return (1 - self.clip_low, 1 + self.clip_high) if self.cap is None else (0.0, self.cap)
