"""The clipped policy-gradient loss over response tokens.

``L = 1/Z * sum_tokens [ -min(rho * A, clip(rho, 1 - eps_low, 1 + eps_high) * A) + beta * KL - c_H * H ]`` with
``rho = pi_theta / pi_old`` per token, ``A`` the advantage of the token's episode, ``KL`` the estimate of
``KL(pi_theta || pi_ref)`` and ``H`` the exact entropy of the token's distribution (arXiv 2508.10839, section 4).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from agents.msgrpo.errors import ConfigError
from agents.msgrpo.surrogates.ppo import PPO
from agents.msgrpo.surrogates.tokens import Surrogate, Tokens

KL_ESTIMATORS = ("k2", "k3")
NORMALIZERS = ("token", "step", "episode")


class PolicyLoss(NamedTuple):
    """The loss, and sums over response tokens for the log (divide by ``tokens``)."""

    loss: Tensor  # scalar, with a gradient
    sums: dict[str, float]
    """``tokens``, ``policy_loss``, ``kl``, ``entropy``, ``clipped_low``, ``clipped_high``, ``ratio``, ``kl_old``."""


def policy_loss(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor | None = None,
    *,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    ref_logprobs: Tensor | None = None,
    kl_coefficient: float = 0.0,
    kl_estimator: str = "k3",
    entropy: Tensor | None = None,
    entropy_coefficient: float = 0.0,
    loss_normalizer: str = "token",
    episode_ids: Sequence[Any] | None = None,
    denominator: float | None = None,
    surrogate: Surrogate | None = None,
    lengths: Tensor | None = None,
    row_data: Mapping[str, Tensor] | None = None,
    token_weights: Tensor | None = None,
    importance: Tensor | None = None,
    share: float = 1.0,
) -> PolicyLoss:
    """The loss of one batch, or of a part of one when ``denominator`` is that of the whole.

    Args:
        logprobs: (B, T) of the response tokens under the model that is trained, temperature applied, in nats. One row
            is one step of an episode. Values where ``mask`` is 0 are ignored, NaN included. (T,) is also taken, as a
            flat run of tokens, and then needs ``denominator`` unless ``loss_normalizer`` is ``"token"``.
        old_logprobs: the same under the model that sampled; no gradient.
        advantages: (B, T), or (B,) one per row; (T,) for flat tokens.
        mask: same shape as ``logprobs``, 1 on response tokens; ``None``: all are.
        clip_low: the ratio is clipped below at ``1 - clip_low`` (where that lowers the objective).
        clip_high: and above at ``1 + clip_high``.
        ref_logprobs: the same as ``old_logprobs`` under the reference model; needed when ``kl_coefficient`` is not 0.
        kl_coefficient: beta.
        kl_estimator: ``"k3"``, ``r - 1 - log r``, or ``"k2"``, ``(log r)^2 / 2``, with ``r = pi_ref / pi_theta``.
        entropy: same shape as ``logprobs``; needed when ``entropy_coefficient`` is not 0.
        entropy_coefficient: c_H.
        loss_normalizer: what ``Z`` counts: ``"token"`` response tokens, ``"step"`` rows with any, ``"episode"``
            different ``episode_ids`` among those rows.
        episode_ids: one per row, for ``"episode"``.
        denominator: ``Z`` itself, in place of counting: for micro-batches, whose size must not change the gradient.
        surrogate: what an advantage becomes in the loss of a token; PPO's with ``clip_low`` and ``clip_high`` when not
            given.
        lengths: (r,) how many of flat tokens belong to each row, for surrogates that look at whole rows; by default
            those of the mask.
        row_data: ``{name: (r,)}`` what the surrogate says of the rows.
        token_weights: same shape as ``logprobs``: factors of the tokens' whole loss, for normalisers that weigh them.
        importance: same shape as ``logprobs``: factors of the tokens' policy term alone, for tokens of another sampler
            (:mod:`agents.msgrpo.learner.importance`).
        share: which part of the update's rows this optimiser step has, for surrogates that add a term of their own.

    Raises:
        ValueError: shapes that don't fit, no response token, a term without what it needs, unknown options.
    """
    tokens = torch.ones_like(logprobs, dtype=torch.bool) if mask is None else mask.bool()
    if tokens.shape != logprobs.shape or old_logprobs.shape != logprobs.shape:
        raise ValueError(
            f"logprobs {tuple(logprobs.shape)}, old_logprobs {tuple(old_logprobs.shape)} and mask "
            f"{tuple(tokens.shape)} must have one shape"
        )
    if advantages.dim() == logprobs.dim() - 1:
        advantages = advantages.unsqueeze(-1)
    advantage = advantages.to(logprobs.dtype).expand_as(logprobs)[tokens]  # (n,), as all below
    if denominator is None:
        denominator = count_normalizer(tokens, loss_normalizer, episode_ids)
    if not denominator > 0:
        raise ValueError(f"the batch has no response token: its {loss_normalizer} count is {denominator}")

    logp = logprobs[tokens]
    if surrogate is None:
        surrogate = PPO(clip_low=clip_low, clip_high=clip_high)
    if lengths is None:
        lengths = tokens.sum(-1).reshape(-1)
    old = old_logprobs[tokens].detach().to(logp.dtype)
    reference = None if ref_logprobs is None else ref_logprobs[tokens].detach().to(logp.dtype)
    told = Tokens(logp, old, advantage, lengths, reference, row_data or {}, share)
    policy = surrogate.terms(told)
    if importance is not None:
        policy = policy * importance[tokens].detach().to(policy.dtype)
    total = policy
    kl = _kl_term(logp, ref_logprobs, tokens, kl_estimator, kl_coefficient)
    if kl is not None and kl_coefficient:
        total = total + kl_coefficient * kl
    if entropy_coefficient:
        if entropy is None:
            raise ValueError(f"entropy_coefficient = {entropy_coefficient} needs the tokens' entropy")
        total = total - entropy_coefficient * entropy[tokens]
    if token_weights is not None:
        total = total * token_weights[tokens]

    loss = total.sum() / denominator
    if (added := surrogate.added(told)) is not None:
        loss = loss + added
    with torch.no_grad():
        low, high = surrogate.clipped(told)
        log_ratio = logp - old
        ratio = log_ratio.exp()
        sums = {
            "tokens": float(logp.numel()),
            "policy_loss": policy.sum().item(),
            "kl": 0.0 if kl is None else kl.sum().item(),
            "entropy": 0.0 if entropy is None else entropy[tokens].sum().item(),
            "clipped_low": low.sum().item(),
            "clipped_high": high.sum().item(),
            "ratio": ratio.sum().item(),
            "kl_old": (ratio - 1 - log_ratio).sum().item(),
        }
    return PolicyLoss(loss, sums)


def count_normalizer(mask: Tensor, loss_normalizer: str, episode_ids: Sequence[Any] | None = None) -> float:
    """``Z`` of a (B, T) mask: its tokens, its rows with any token, or the different episodes of those rows."""
    if loss_normalizer == "token":
        return float(mask.sum().item())
    if loss_normalizer not in NORMALIZERS:
        raise ConfigError(f"loss_normalizer = {loss_normalizer!r} can't be used; accepted: {', '.join(NORMALIZERS)}")
    if mask.dim() != 2:
        raise ValueError(f"loss_normalizer = {loss_normalizer!r} of flat tokens needs the denominator")
    rows = mask.any(-1).tolist()
    if loss_normalizer == "step":
        return float(sum(rows))
    if episode_ids is None or len(episode_ids) != len(rows):
        raise ValueError(f"loss_normalizer = 'episode' needs one episode id for each of the {len(rows)} rows")
    return float(len({episode for episode, used in zip(episode_ids, rows, strict=True) if used}))


def _kl_term(
    logp: Tensor, ref_logprobs: Tensor | None, tokens: Tensor, estimator: str, coefficient: float
) -> Tensor | None:
    """The estimate of KL(policy || reference) at every token, (n,); ``None`` without a reference."""
    if estimator not in KL_ESTIMATORS:
        raise ConfigError(f"kl_estimator = {estimator!r} can't be used; accepted: {', '.join(KL_ESTIMATORS)}")
    if ref_logprobs is None:
        if coefficient:
            raise ValueError(f"kl_coefficient = {coefficient} needs the reference model's log-probabilities")
        return None
    log_r = ref_logprobs[tokens].detach().to(logp.dtype) - logp
    return log_r.exp() - 1 - log_r if estimator == "k3" else log_r.square() / 2
