"""Importance weights by their formula, and what they do to the loss."""

import math

import pytest
import torch

from agents.msgrpo.errors import ConfigError
from agents.msgrpo.learner.loss import importance_weights, loss_of
from agents.msgrpo.surrogates.tokens import PPO, Tokens


def test_weights_are_the_truncated_ratio_of_learner_and_sampler():
    old = [torch.tensor([-1.0, -2.0], dtype=torch.float64), torch.tensor([-0.5], dtype=torch.float64)]
    sampled = [torch.tensor([-1.5, -1.0], dtype=torch.float64), torch.tensor([-3.0], dtype=torch.float64)]
    weights, metrics = importance_weights(old, sampled, 2.0)
    assert torch.cat(weights).tolist() == pytest.approx([math.exp(0.5), math.exp(-1), 2.0])
    assert metrics["importance_mean"] == pytest.approx((math.exp(0.5) + math.exp(-1) + 2) / 3)
    assert metrics["importance_max"] == pytest.approx(math.exp(2.5))
    assert metrics["importance_clipped"] == pytest.approx(1 / 3)
    with pytest.raises(ConfigError, match="importance_cap"):
        importance_weights(old, [None, sampled[1]], 2.0)


def test_weighted_samples_of_another_policy_give_the_gradient_of_the_learners_own():
    """E_sampler[w * grad log pi * A] = E_pi[grad log pi * A], summed exactly over a small vocabulary."""
    torch.manual_seed(0)
    logits = torch.randn(5, dtype=torch.float64, requires_grad=True)
    sampler = torch.log_softmax(logits.detach() + 0.3 * torch.randn(5, dtype=torch.float64), -1)
    advantages = torch.randn(5, dtype=torch.float64)
    logp = torch.log_softmax(logits, -1)
    wanted = torch.autograd.grad(-(logp.exp() * advantages).sum(), logits, retain_graph=True)[0]
    (weights,), _ = importance_weights([logp.detach()], [sampler], 1e9)
    got = torch.zeros(5, dtype=torch.float64)
    for token in range(5):  # each is drawn by the sampler with its probability there
        one = slice(token, token + 1)
        told = Tokens(logp[one], logp[one].detach(), advantages[one], torch.tensor([1]), importance=weights[one])
        loss = loss_of(told, PPO(), 1.0).loss
        got += sampler[token].exp() * torch.autograd.grad(loss, logits, retain_graph=True)[0]
    assert got.tolist() == pytest.approx(wanted.tolist(), abs=1e-12)


def test_importance_is_a_factor_of_the_surrogate_and_weights_are_one_of_every_term():
    logp, entropy = torch.tensor([-1.0, -2.0]), torch.tensor([0.3, 0.6])
    told = Tokens(logp, logp, torch.tensor([1.0, -2.0]), torch.tensor([2]), ref_logprobs=torch.tensor([-1.5, -1.0]))
    factors = torch.tensor([3.0, 0.5])

    def loss(tokens: Tokens, weights: torch.Tensor | None = None) -> float:
        return loss_of(
            tokens, PPO(), 1.0, weights=weights,
            kl_coefficient=0.2, kl_estimator="k2", entropy=entropy, entropy_coefficient=0.1,
        ).loss.item()  # fmt: skip

    surrogate, others = (-1.0, 2.0), (0.2 * 0.125 - 0.03, 0.2 * 0.5 - 0.06)
    assert loss(told._replace(importance=factors)) == pytest.approx(3 * surrogate[0] + 0.5 * surrogate[1] + sum(others))
    wanted = 3 * (surrogate[0] + others[0]) + 0.5 * (surrogate[1] + others[1])
    assert loss(told, factors) == pytest.approx(wanted)
