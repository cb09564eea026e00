"""Surrogate losses: the tokens and the parts of one, and those of PPO, GSPO and CISPO."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple, Protocol

import torch
from pydantic import Field
from torch import Tensor

from agents.msgrpo.credit.batch import Batch, Floats, TokenRow
from agents.msgrpo.plugins import Method, Shared, configured


class Tokens(NamedTuple):
    """Some response tokens, n of them, of r rows; a row is one step's response, and its tokens stand together.

    Attributes:
        logprobs: (n,) under the model that is trained, temperature applied, in nats; with a gradient. Before the update
            they are ``old_logprobs``.
        old_logprobs: (n,) under the model that sampled.
        advantages: (n,)
        lengths: (r,) how many of the tokens belong to each row.
        ref_logprobs: (n,) under the reference model, for surrogates that need ``"reference"``.
        data: ``{name: (r,)}`` of :meth:`Surrogate.row_data`.
        share: which part of the update's rows the optimiser step has that these tokens belong to.
        importance: (n,) weights of tokens from another sampler, factors of the surrogate's term alone.
    """

    logprobs: Tensor
    old_logprobs: Tensor
    advantages: Tensor
    lengths: Tensor
    ref_logprobs: Tensor | None = None
    data: Mapping[str, Tensor] = {}
    share: float = 1.0
    importance: Tensor | None = None

    def of_rows(self, numbers: Sequence[int], logprobs: Tensor, share: float) -> "Tokens":
        """Take the tokens of some rows, whose log-probabilities are now these; the rest becomes of their type."""
        places = self.places(numbers)
        old, advantages, ref, importance = (
            None if each is None else each[places].to(logprobs)
            for each in (self.old_logprobs, self.advantages, self.ref_logprobs, self.importance)
        )
        assert old is not None
        assert advantages is not None
        data = {name: values[list(numbers)].to(logprobs) for name, values in self.data.items()}
        lengths = self.lengths[list(numbers)].to(logprobs.device)
        return Tokens(logprobs, old, advantages, lengths, ref, data, share, importance)

    def places(self, numbers: Sequence[int]) -> Tensor:
        lengths, ends = self.lengths.tolist(), self.lengths.cumsum(0).tolist()
        return torch.cat([torch.arange(ends[i] - lengths[i], ends[i]) for i in numbers])

    def log_ratio(self) -> Tensor:
        return self.logprobs - self.old_logprobs

    def row_sum(self, values: Tensor) -> Tensor:
        """Return (r,) the sums of (n,) values over each row's tokens."""
        return values.new_zeros(len(self.lengths)).index_add(0, self.rows(), values)

    def spread(self, values: Tensor) -> Tensor:
        """Return (n,) each row's value at each of its tokens, from (r,)."""
        return values.repeat_interleave(self.lengths)

    def rows(self) -> Tensor:
        return torch.arange(len(self.lengths), device=self.lengths.device).repeat_interleave(self.lengths)


class Surrogate(Method, Protocol):
    """A surrogate loss; all but ``terms`` have defaults."""

    @property
    def needs(self) -> frozenset[str]:
        """Words for what it uses beyond the tokens; nothing by default.

        ``"reference"``: log-probabilities of the model as it was at the start; ``"current"``: a pass without a gradient
        before every optimiser step, for how far each token has moved.
        """
        return frozenset()

    def row_data(
        self, rows: Sequence[TokenRow], batch: Batch, log_ratios: Sequence[Tensor] | None
    ) -> Mapping[str, Floats]:
        """Return numbers per row, ``{name: (len(rows),)}``, that the other methods find in ``tokens.data``.

        Called once for each iteration with all rows of the update; with ``"current"`` in ``needs`` before every
        optimiser step, with its rows and, for each, ``log pi_theta - log pi_old`` of its tokens. ``row.trajectory`` is
        a place in ``batch``.
        """
        return {}

    def terms(self, tokens: Tokens) -> Tensor:
        """Return (n,) the loss of every token, before it is summed and divided by the normaliser's Z."""

    def added(self, tokens: Tokens) -> Tensor | None:
        """Return a term of the loss that no normaliser divides, a sum over the rows divided by ``tokens.share``."""
        return None

    def clipped(self, tokens: Tokens) -> tuple[Tensor, Tensor]:
        """Return (n,) and (n,) for the log: the tokens whose gradient a clip below, or above, reduces."""
        nothing = torch.zeros_like(tokens.logprobs, dtype=torch.bool)
        return nothing, nothing


class PlainSurrogate(Surrogate):
    """A base class of surrogates, with the defaults of :class:`Surrogate`."""


def ppo_terms(ratio: Tensor, advantages: Tensor, low: float, high: float) -> Tensor:
    """Return (n,) ``-min(rho A, clip(rho, 1 - low, 1 + high) A)``."""
    return -torch.minimum(ratio * advantages, ratio.clamp(1 - low, 1 + high) * advantages)


def ppo_clipped(ratio: Tensor, advantages: Tensor, low: float, high: float) -> tuple[Tensor, Tensor]:
    """Return where :func:`ppo_terms` has no gradient: the minimum keeps the one that brings a ratio back."""
    return (ratio < 1 - low) & (advantages < 0), (ratio > 1 + high) & (advantages > 0)


@configured
class PPO(PlainSurrogate):
    """``-min(rho A, clip(rho, 1 - clip_low, 1 + clip_high) A)`` with ``rho = pi_theta / pi_old`` of the token.

    arXiv 1707.06347; arXiv 2508.10839, section 4. A dual clip c also bounds the loss of a negative advantage, which
    grows with the ratio: ``-max(min(...), c A)`` (Ye et al. 2020, arXiv 1912.09729).
    """

    clip_low: float = Field(0.2, ge=0, le=1)
    """The ratio is clipped below at 1 - clip_low, if that lowers the objective."""
    clip_high: float = Field(0.2, ge=0)
    """The ratio is clipped above at 1 + clip_high, if that lowers the objective."""
    dual_clip: float | None = Field(None, gt=1)
    """The ratio of a token with a negative advantage is clipped above at this as well; 3 in the first author's runs."""

    shared: ClassVar[Shared] = {"clip_low": "clip_low", "clip_high": "clip_high"}

    def terms(self, tokens: Tokens) -> Tensor:
        ratio, advantages = tokens.log_ratio().exp(), tokens.advantages
        loss = ppo_terms(ratio, advantages, self.clip_low, self.clip_high)
        if self.dual_clip is None:
            return loss
        return torch.where(advantages < 0, torch.minimum(loss, -self.dual_clip * advantages), loss)

    def clipped(self, tokens: Tokens) -> tuple[Tensor, Tensor]:
        ratio = tokens.log_ratio().exp()
        low, high = ppo_clipped(ratio, tokens.advantages, self.clip_low, self.clip_high)
        return low, high if self.dual_clip is None else high | ((ratio > self.dual_clip) & (tokens.advantages < 0))


@configured
class GSPO(PlainSurrogate):
    """PPO's clip on ``s = exp(mean_k log rho_k)``, the geometric mean of a response's token ratios (arXiv 2507.18071).

    A token's ratio is ``sg(s) pi_k / sg(pi_k)``, so that tokens of one response may have different advantages (the
    paper's GSPO-token). Our reading: a sequence is one step's response. The paper averages over each response first:
    ``loss_normalizer = "response"``.
    """

    clip_low: float = Field(3e-4, ge=0, le=1)
    """The response's ratio is clipped below at 1 - clip_low, if that lowers the objective."""
    clip_high: float = Field(4e-4, ge=0)
    """The response's ratio is clipped above at 1 + clip_high, if that lowers the objective."""

    shared: ClassVar[Shared] = {"clip_low": "clip_low", "clip_high": "clip_high"}

    def terms(self, tokens: Tokens) -> Tensor:
        own_gradient = tokens.logprobs - tokens.logprobs.detach()  # 0, with the token's gradient
        ratio = (self._log_ratio(tokens) + own_gradient).exp()
        return ppo_terms(ratio, tokens.advantages, self.clip_low, self.clip_high)

    def clipped(self, tokens: Tokens) -> tuple[Tensor, Tensor]:
        return ppo_clipped(self._log_ratio(tokens).exp(), tokens.advantages, self.clip_low, self.clip_high)

    @torch.no_grad()
    def _log_ratio(self, tokens: Tokens) -> Tensor:
        return tokens.spread(tokens.row_sum(tokens.log_ratio()) / tokens.lengths)


@configured
class CISPO(PlainSurrogate):
    """``-sg(clip(rho, 1 - clip_low, 1 + clip_high)) A log pi``, so that every token keeps its gradient.

    arXiv 2506.13585.
    """

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
        """Return the tokens with another weight than their ratio: it is clipped whatever the advantage's sign."""
        ratio, (low, high) = self.ratios(tokens), self._limits
        some = tokens.advantages != 0
        return (ratio < low) & some, (ratio > high) & some

    @torch.no_grad()
    def ratios(self, tokens: Tokens) -> Tensor:
        """Return (n,) the ratios that are clipped to be the tokens' weights."""
        return tokens.log_ratio().exp()

    @property
    def _limits(self) -> tuple[float, float]:
        return (1 - self.clip_low, 1 + self.clip_high) if self.cap is None else (0.0, self.cap)
