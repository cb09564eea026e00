"""The clipped policy-gradient loss over response tokens, and the weights of tokens from another sampler.

``L = 1/Z * sum_tokens [ -w * min(rho * A, clip(rho, 1 - eps_low, 1 + eps_high) * A) + beta * KL - c_H * H ]`` with
``rho = pi_theta / pi_old`` per token, ``A`` the advantage of the token's episode, ``KL`` the estimate of
``KL(pi_theta || pi_ref)`` and ``H`` the exact entropy of the token's distribution (arXiv 2508.10839, section 4).

The sampler's distribution is not exactly the learner's: another engine rounds differently, and with staleness its
weights are older. ``w = min(pi_old / pi_sampler, cap)`` makes up for it, where ``pi_old`` is the learner as it was
before the update. (Decoupled PPO: Hilton et al., arXiv 2110.00641; truncated, for the mismatch of engines: Yao et al.,
"Your efficient RL framework secretly brings you off-policy RL training", 2025.)
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from agents.msgrpo.errors import ConfigError
from agents.msgrpo.surrogates.tokens import PPO, Surrogate, Tokens

KL_ESTIMATORS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "k2": lambda log_r: log_r.square() / 2,
    "k3": lambda log_r: log_r.exp() - 1 - log_r,
}
"""Estimates of ``KL(pi_theta || pi_ref)`` at a token, from ``log r = log pi_ref - log pi_theta``."""


class PolicyLoss(NamedTuple):
    """The loss, and sums over response tokens for the log (divide by ``tokens``)."""

    loss: Tensor  # scalar, with a gradient
    sums: dict[str, float]
    """``tokens``, ``policy_loss``, ``kl``, ``entropy``, ``clipped_low``, ``clipped_high``, ``ratio``, ``kl_old``."""


def loss_of(
    tokens: Tokens,
    surrogate: Surrogate,
    denominator: float,
    *,
    kl_coefficient: float = 0.0,
    kl_estimator: str = "k3",
    entropy: Tensor | None = None,
    entropy_coefficient: float = 0.0,
    weights: Tensor | None = None,
) -> PolicyLoss:
    """Return the loss of n response tokens, which may be a part of those that ``denominator`` counts.

    ``denominator`` is ``Z`` of the whole optimiser step: the size of micro-batches must not change the gradient.
    ``entropy`` (n,) is in nats, with a gradient. ``weights`` (n,) are factors of the whole loss of a token.
    """
    logp = tokens.logprobs
    total = policy = surrogate.terms(tokens)
    if tokens.importance is not None:
        total = policy = policy * tokens.importance
    if kl_estimator not in KL_ESTIMATORS:
        raise ConfigError(f"kl_estimator must be one of {', '.join(KL_ESTIMATORS)}, got {kl_estimator!r}")
    kl = None if tokens.ref_logprobs is None else KL_ESTIMATORS[kl_estimator](tokens.ref_logprobs - logp)
    if kl_coefficient:
        if kl is None:
            raise ValueError(f"kl_coefficient = {kl_coefficient} needs the reference model's log-probabilities")
        total = total + kl_coefficient * kl
    if entropy_coefficient:
        if entropy is None:
            raise ValueError(f"entropy_coefficient = {entropy_coefficient} needs the tokens' entropy")
        total = total - entropy_coefficient * entropy
    if weights is not None:
        total = total * weights
    loss = total.sum() / denominator
    if (added := surrogate.added(tokens)) is not None:
        loss = loss + added
    with torch.no_grad():
        low, high = surrogate.clipped(tokens)
        log_ratio = tokens.log_ratio()
        ratio = log_ratio.exp()
        sums = {
            "tokens": float(logp.numel()),
            "policy_loss": policy.sum().item(),
            "kl": 0.0 if kl is None else kl.sum().item(),
            "entropy": 0.0 if entropy is None else entropy.sum().item(),
            "clipped_low": low.sum().item(),
            "clipped_high": high.sum().item(),
            "ratio": ratio.sum().item(),
            "kl_old": (ratio - 1 - log_ratio).sum().item(),
        }
    return PolicyLoss(loss, sums)


def policy_loss(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor | None = None,
    *,
    ref_logprobs: Tensor | None = None,
    entropy: Tensor | None = None,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    surrogate: Surrogate | None = None,
    loss_normalizer: str = "token",
    episode_ids: Sequence[Any] | None = None,
    denominator: float | None = None,
    **terms: Any,
) -> PolicyLoss:
    """Return ``1/Z * sum_{m_bt = 1} [ -min(rho A, clip(rho, 1 - clip_low, 1 + clip_high) A) + beta KL - c_H H ]``.

    Args:
        logprobs: (B, T) ``log pi_theta`` in nats, temperature applied; a row is one step of an episode, (T,) is one
            row. If the mask is 0 nothing counts, NaN included.
        old_logprobs, ref_logprobs, entropy: (B, T) ``log pi_old`` in ``rho = pi_theta / pi_old``, ``log pi_ref`` and H.
        advantages: A, (B,) one per row, or (B, T).
        mask: m, (B, T) 1 on response tokens; all are when not given.
        surrogate: takes the place of the clipped term.
        loss_normalizer: what ``Z`` counts: ``"token"`` response tokens, ``"step"`` rows with any, ``"episode"``
            different ``episode_ids``, one per row, among those. ``denominator`` is ``Z`` itself.
        terms: ``kl_coefficient`` (beta), ``kl_estimator`` and ``entropy_coefficient`` (c_H) of :func:`loss_of`.
    """
    m = torch.ones_like(logprobs, dtype=torch.bool) if mask is None else mask.bool()
    if not m.shape == logprobs.shape == old_logprobs.shape:
        shapes = ", ".join(str(tuple(each.shape)) for each in (logprobs, old_logprobs, m))
        raise ValueError(f"logprobs, old_logprobs and mask must have one shape, got {shapes}")
    if advantages.shape not in (logprobs.shape, logprobs.shape[:-1]):
        accepted = f"{tuple(logprobs.shape)}, one per token, or {tuple(logprobs.shape[:-1])}, one per row"
        raise ValueError(f"advantages must have the shape {accepted}, got {tuple(advantages.shape)}")
    if denominator is not None and not denominator > 0:
        raise ValueError(f"denominator must be above 0, got {denominator!r}")
    lengths = m.sum(-1).reshape(-1)
    if loss_normalizer not in ("token", "step", "episode"):
        raise ConfigError(f"loss_normalizer must be one of token, step, episode, got {loss_normalizer!r}")
    labels = range(len(lengths)) if loss_normalizer == "step" else episode_ids
    if denominator is not None:
        z = denominator
    elif loss_normalizer == "token":
        z = float(lengths.sum())
    elif labels is None or len(labels) != len(lengths):
        raise ValueError(f"loss_normalizer = 'episode' needs one episode id for each of the {len(lengths)} rows")
    else:
        z = float(len({label for label, length in zip(labels, lengths.tolist(), strict=True) if length}))
    if not z > 0:
        raise ValueError(f"the batch has no response token: its {loss_normalizer} count is {z}")
    each = advantages.unsqueeze(-1) if advantages.dim() < logprobs.dim() else advantages
    logp = logprobs[m]
    old, a = old_logprobs[m].detach().to(logp), each.expand_as(logprobs)[m].to(logp)
    reference = None if ref_logprobs is None else ref_logprobs[m].detach().to(logp)
    clipped = surrogate or PPO(clip_low=clip_low, clip_high=clip_high)
    told = Tokens(logp, old, a, lengths, reference)
    return loss_of(told, clipped, z, entropy=None if entropy is None else entropy[m], **terms)


def importance_weights(
    old: Sequence[Tensor], sampled: Sequence[Tensor | None], cap: float
) -> tuple[list[Tensor], dict[str, float]]:
    """Return the weights (K_t,) of every row's tokens, at most ``cap``, and their metrics.

    ``old`` and ``sampled`` are log-probabilities (K_t,) in nats, of the learner before the update and of the sampler.
    """
    if any(one is None for one in sampled):
        raise ConfigError(
            f"importance_cap = {cap:g} weights tokens by the sampler's log-probabilities, and the engine doesn't tell "
            "them; with importance_cap = 0 there are no weights, and the difference isn't corrected"
        )
    told = [one for one in sampled if one is not None]
    ratios = [(mine - theirs).exp() for mine, theirs in zip(old, told, strict=True)]
    everything = torch.cat(ratios)
    metrics = {
        "importance_mean": everything.clamp(max=cap).mean().item(),
        "importance_max": everything.max().item(),
        "importance_clipped": (everything > cap).double().mean().item(),
    }
    return [ratio.clamp(max=cap) for ratio in ratios], metrics


def mismatch(learner: Tensor, sampler: Tensor) -> dict[str, float]:
    """Return how far the sampler's log-probabilities of its own tokens are from the learner's, per token."""
    difference = learner.double() - sampler.double()
    return {
        "mismatch_mean": difference.abs().mean().item(),
        "mismatch_max": difference.abs().max().item(),
        "mismatch_kl": (difference.exp() - 1 - difference).mean().item(),
    }
