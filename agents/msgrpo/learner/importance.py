"""How far the sampler is from the learner, and the weights that make up for it.

The tokens of a batch come from the sampler's distribution, which is not exactly the learner's: another engine rounds
differently, and with staleness its weights are older. A token's loss is multiplied by ``w = min(pi_old / pi_sampler,
cap)``, where ``pi_old`` is the learner as it was before the update; the clipped ratio is that of the learner with
``pi_old``. (Decoupled PPO: Hilton et al., arXiv 2110.00641; truncated, for the mismatch of engines: Yao et al., "Your
efficient RL framework secretly brings you off-policy RL training", 2025; Ionides, "Truncated importance sampling".)
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from agents.msgrpo.errors import ConfigError


def importance_weights(
    old: Sequence[Tensor], sampled: Sequence[Tensor | None], cap: float
) -> tuple[list[Tensor], dict[str, float]]:
    """The weights of every row's tokens, and their metrics.

    Args:
        old: (K_t,) per row, log-probabilities of the learner before the update, in nats.
        sampled: the same of the sampler.
        cap: the largest weight.

    Raises:
        ConfigError: a sampler that doesn't tell its log-probabilities.
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
    """How far the sampler's log-probabilities of its own tokens are from the learner's, per token."""
    difference = learner.double() - sampler.double()
    return {
        "mismatch_mean": difference.abs().mean().item(),
        "mismatch_max": difference.abs().max().item(),
        "mismatch_kl": (difference.exp() - 1 - difference).mean().item(),
    }
