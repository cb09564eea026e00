"""Surrogate losses: of a response's tokens alone, and those that look at an episode's group (``row_data``)."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor

from agents.msgrpo import (
    CISPO,
    GSPO,
    PPO,
    SURROGATES,
    ConfigError,
    PlainSurrogate,
    Shared,
    Surrogate,
    TokenRow,
    Tokens,
    configured,
)
from agents.msgrpo.credit import Batch, Floats


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
    """The price of likelihood in advantage: the log-ratio aimed at is A / beta; the paper has 0.01 to 0.02."""

    needs: ClassVar[frozenset[str]] = frozenset({"reference"})

    def terms(self, tokens: Tokens) -> Tensor:
        if tokens.ref_logprobs is None:
            raise ValueError("the direct_apo loss needs the reference model's log-probabilities")
        lengths = tokens.lengths.to(tokens.logprobs.dtype)
        wanted = tokens.row_sum(tokens.advantages) / lengths / self.beta
        log_ratio = tokens.row_sum(tokens.logprobs - tokens.ref_logprobs)
        return tokens.spread((wanted - log_ratio).square() / 2 / lengths)


Rows = Sequence[TokenRow]


@configured
class NFT(PlainSurrogate):
    """Likelihood training with labels of its own: the credit's advantages only decide what is drawn.

    With ``c`` 1 for an episode that succeeds, else 0, and ``p`` the success rate of its group, clipped to 0.02 .. 0.98,
    a token's loss is ``(1 - p) [c (-log rho) + (1 - c) (-log max((1 - p rho) / (1 - p), 1))]``, whose gradient goes
    straight through the maximum (arXiv 2505.18116; NVlabs/NFT). At ``rho = 1`` it is REINFORCE with the advantage
    ``c - p``. Groups without a difference have no loss; they still count in the normaliser's Z.
    """

    labels: Literal["success", "return"] = "success"
    """The label c: 1 for an episode that the game calls a success, or, for graded returns, ``(R - min) / (max - min)``
    over its group (our reading)."""
    floor: float = Field(0.02, gt=0, lt=0.5)
    """The group's rate p is clipped to floor .. 1 - floor."""

    def row_data(self, rows: Rows, batch: Batch, log_ratios: Sequence[Tensor] | None) -> Mapping[str, Floats]:
        """Return ``label`` c, ``rate`` p and ``weight`` of each row: its draw's scale, 0 in groups without
        difference."""
        labels, rates = np.array([float(each.success) for each in batch.trajectories]), np.zeros(len(batch))
        returns = batch.returns()
        for members in batch.groups.values():
            if self.labels == "return":
                own = returns[members]
                labels[members] = (own - own.min()) / (own.max() - own.min()) if own.max() > own.min() else 0.0
            rates[members] = labels[members].mean()
        own_rows = [row.trajectory for row in rows]
        some = (rates[own_rows] > 0) & (rates[own_rows] < 1)
        return {
            "label": labels[own_rows],
            "rate": rates[own_rows].clip(self.floor, 1 - self.floor),
            "weight": np.array([row.scale for row in rows]) * some,
        }

    def terms(self, tokens: Tokens) -> Tensor:
        label, rate, weight = (tokens.spread(tokens.data[name]) for name in ("label", "rate", "weight"))
        log_ratio = tokens.log_ratio()
        failing = (1 - rate * log_ratio.exp()) / (1 - rate)
        floored = failing + (failing.clamp(min=1) - failing).detach()
        return weight * (1 - rate) * (-label * log_ratio - (1 - label) * floored.log())


@configured
class APO(PPO):
    """PPO with a KL term of its own, on top of the run's; the k3 estimate (arXiv 2506.21655; Indolent-Kawhi/View-R1).

    * A token of positive advantage has the KL term times ``1 - exp(-e p_g)``, ``p_g`` being the success rate of its
      group; if ``p_g`` is 0 or 1, and for all other tokens, it counts in full.
    * Failures that are x tokens longer than the mean success of their group have a negative advantage multiplied by
      ``2 - 1.00001^-x``.

    Our reading: an episode's length is the number of its response tokens, and the run's normaliser divides the KL term.
    """

    kl_coefficient: float = Field(1e-3, ge=0)
    """Coefficient of the KL term that is weighed by the success rate."""
    length_base: float = Field(1.00001, ge=1)
    """The base of the factor of long failures; 1 leaves them as they are."""

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"reference"})

    def row_data(self, rows: Rows, batch: Batch, log_ratios: Sequence[Tensor] | None) -> Mapping[str, Floats]:
        """Return ``kl_weight`` of a row's tokens of positive advantage, ``length_factor`` of those of negative one."""
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


@configured
class P3O(PlainSurrogate):
    """``-c_i log pi`` with the coefficient of the episode's pairs: the credit only decides what is drawn.

    A pair's gradient is ``q w grad(l_i - l_j) / 2`` with ``q = R_i - R_j``, ``l`` the log-probability of a whole
    episode and ``w = exp(l_i + l_j - old_i - old_j)`` kept between ``1 / ratio_limit`` and ``ratio_limit``; a pair
    whose ``l_i - l_j`` has already moved by more than ``clip`` in the direction of ``q`` has none (P3O-V2, arXiv
    2310.00212; thwu1/trlx). So ``c_i = 1 / (n - 1) sum_{j != i} q w``: on policy it is RLOO, if all episodes are in the
    update (``episode_sampling = "off"``) and ``loss_normalizer = "episode"``.
    """

    off_policy: bool = False
    """Weigh and clip pairs by how far their episodes have moved, which a pass before every optimiser step tells. At an
    iteration's first step nothing has; false takes every step for such a one."""
    clip: float = Field(0.2, ge=0)
    """The nats that the difference of a pair's log-probabilities may move its way before its gradient ends."""
    ratio_limit: float = Field(10.0, ge=1)
    """A pair's ratio is at most this, and at least 1 / ratio_limit."""
    discount: float = Field(1.0, gt=0, le=1)
    """Discount per step in an episode's return."""
    minibatches: int = 1
    """Optimiser steps per pass: the run's setting. The ratio of whole episodes needs all steps of each in one."""

    shared: ClassVar[Shared] = {"discount": "discount", "minibatches": "minibatches"}

    @model_validator(mode="after")
    def _whole_episodes(self) -> "P3O":
        if self.off_policy and self.minibatches != 1:
            raise ValueError(
                f"off_policy = true with minibatches = {self.minibatches}: a minibatch holds some steps of each "
                "episode, and the ratio needs all; accepted: minibatches = 1 (with update_passes of 2 or more)"
            )
        return self

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"current"}) if self.off_policy else frozenset()

    def row_data(self, rows: Rows, batch: Batch, log_ratios: Sequence[Tensor] | None) -> Mapping[str, Floats]:
        """Return ``coefficient`` c_i of each row's episode, times its draw's scale."""
        returns = batch.returns(self.discount)
        trajectory_of = {row.draw: row.trajectory for row in rows}
        moved = dict.fromkeys(trajectory_of, 0.0)  # draw -> l_i - old_i
        if log_ratios is not None:
            for row, told in zip(rows, log_ratios, strict=True):
                moved[row.draw] += float(told.sum())
        groups: dict[Hashable, list[int]] = {}
        for draw, trajectory in trajectory_of.items():
            groups.setdefault(batch.trajectories[trajectory].group, []).append(draw)
        coefficients: dict[int, float] = {}
        for draws in groups.values():
            own, ratios = returns[[trajectory_of[draw] for draw in draws]], np.array([moved[draw] for draw in draws])
            pairs = own[:, None] - own[None, :]
            if self.off_policy:
                limit = np.log(self.ratio_limit)
                pairs *= np.exp((ratios[:, None] + ratios[None, :]).clip(-limit, limit))
                pairs *= np.sign(pairs) * (ratios[:, None] - ratios[None, :]) <= self.clip
            coefficients.update(zip(draws, (pairs.sum(1) / max(1, len(draws) - 1)).tolist(), strict=True))
        return {"coefficient": np.array([coefficients[row.draw] * row.scale for row in rows])}

    def terms(self, tokens: Tokens) -> Tensor:
        return -tokens.spread(tokens.data["coefficient"]) * tokens.logprobs


@configured
class LLDS:
    """Another surrogate and the likelihood that good episodes have lost (arXiv 2512.04220).

    With ``D = log pi_old - log pi_theta``, ``weight`` times the mean over the episodes i with ``A_i >= 0`` of
    ``1 / (tokens of i) sum_t 1[sum_k D_tk > 0] sum_k max(0, D_tk)`` is added, whatever the normaliser is. At the first
    optimiser step of an iteration ``D`` is 0, so it needs ``minibatches`` or ``update_passes`` above 1. If an episode's
    steps have different advantages, ``A_i`` is their mean (our reading).
    """

    base: str = "ppo"
    """The surrogate that the term is added to; its settings stand in [surrogate.NAME] as always."""
    weight: float = Field(0.2, ge=0)
    """lambda, what the term is multiplied by."""
    tolerance: float = Field(1e-5, ge=0)
    """A loss of fewer nats, of a token or of a response, is rounding and doesn't count; 0 is the formula itself."""

    def __post_init__(self) -> None:
        if issubclass(SURROGATES.find(self.base), LLDS):
            raise ValueError(f"base = {self.base!r} can't be used: accepted is another surrogate")
        self._base: Surrogate = SURROGATES.make(self.base)

    def compose(self, make: Callable[[str], Surrogate]) -> None:
        """Take the base with the run's settings; a ConfigError for one that is told of every optimiser step's rows."""
        self._base = make(self.base)
        if "current" in self._base.needs:
            raise ConfigError(
                f"[surrogate.llds] base = {self.base!r} looks at the rows of every optimiser step; accepted are those "
                "that look once"
            )

    @property
    def needs(self) -> frozenset[str]:
        return self._base.needs

    def row_data(self, rows: Rows, batch: Batch, log_ratios: Sequence[Tensor] | None) -> Mapping[str, Floats]:
        """Return ``share_of_mean``: what a row's lost nats are multiplied by, 0 in episodes of negative advantage."""
        tokens: dict[int, int] = {}
        advantages: dict[int, list[float]] = {}
        for row in rows:
            tokens[row.draw] = tokens.get(row.draw, 0) + len(row.response)
            advantages.setdefault(row.draw, []).append(float(np.mean(row.token_advantages())))
        good = {draw for draw, each in advantages.items() if np.mean(each) >= 0}
        own = [1 / (len(good) * tokens[row.draw]) if row.draw in good else 0.0 for row in rows]
        return {**self._base.row_data(rows, batch, log_ratios), "share_of_mean": np.array(own)}

    def terms(self, tokens: Tokens) -> Tensor:
        return self._base.terms(tokens)

    def added(self, tokens: Tokens) -> Tensor:
        lost = -tokens.log_ratio()
        counts = tokens.row_sum(lost.detach()) > self.tolerance  # (r,)
        nats = tokens.row_sum(lost * (lost > self.tolerance))
        term = self.weight / tokens.share * (tokens.data["share_of_mean"] * counts * nats).sum()
        more = self._base.added(tokens)
        return term if more is None else term + more

    def clipped(self, tokens: Tokens) -> tuple[Tensor, Tensor]:
        return self._base.clipped(tokens)
