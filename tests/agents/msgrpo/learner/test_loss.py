"""The loss against plain Python loops in float64, for every normaliser and every term, on random ragged batches."""

import math
import random
from typing import Any

import pytest
import torch

from agents.msgrpo import ConfigError
from agents.msgrpo.learner.loss import importance_weights, loss_of, policy_loss
from agents.msgrpo.surrogates.tokens import PPO, Tokens


def ragged(seed: int, rows: int = 5, longest: int = 6) -> dict[str, Any]:
    """Random rows of different lengths; two rows may be of one episode, and some masks have holes."""
    rng = random.Random(seed)
    batch: dict[str, Any] = {name: [] for name in ("logp", "old", "ref", "entropy", "advantage", "episode")}
    for _ in range(rows):
        n = rng.randint(1, longest)
        batch["logp"].append([-rng.random() * 3 for _ in range(n)])
        batch["old"].append([x + rng.gauss(0, 0.3) for x in batch["logp"][-1]])
        batch["ref"].append([x + rng.gauss(0, 0.3) for x in batch["logp"][-1]])
        batch["entropy"].append([rng.random() for _ in range(n)])
        batch["advantage"].append(rng.gauss(0, 1))
        batch["episode"].append(rng.randint(0, 2))
    return batch


def plain_loss(
    batch: dict[str, Any], normalizer: str, low: float, high: float, beta: float, kl: str, c: float
) -> float:
    total, tokens = 0.0, 0
    for row, logps in enumerate(batch["logp"]):
        for t, logp in enumerate(logps):
            ratio, a = math.exp(logp - batch["old"][row][t]), batch["advantage"][row]
            clipped = min(max(ratio, 1 - low), 1 + high)
            total += -min(ratio * a, clipped * a)
            log_r = batch["ref"][row][t] - logp
            total += beta * (math.exp(log_r) - 1 - log_r if kl == "k3" else log_r**2 / 2)
            total -= c * batch["entropy"][row][t]
            tokens += 1
    z = {"token": tokens, "step": len(batch["logp"]), "episode": len(set(batch["episode"]))}[normalizer]
    return total / z


def plain_gradient(batch: dict[str, Any], *options: Any) -> list[list[float]]:
    h, gradient = 1e-6, []
    for row, logps in enumerate(batch["logp"]):
        gradient.append([])
        for t, logp in enumerate(list(logps)):
            sides = []
            for shift in (h, -h):
                batch["logp"][row][t] = logp + shift
                sides.append(plain_loss(batch, *options))
            batch["logp"][row][t] = logp
            gradient[-1].append((sides[0] - sides[1]) / (2 * h))
    return gradient


def padded(rows: list[list[float]], *, left: bool = False, fill: float = math.nan) -> torch.Tensor:
    longest = max(map(len, rows)) + 1
    table = torch.full((len(rows), longest), fill, dtype=torch.float64)
    for i, row in enumerate(rows):
        place = slice(longest - len(row), longest) if left else slice(0, len(row))
        table[i, place] = torch.tensor(row, dtype=torch.float64)
    return table


def tensors(batch: dict[str, Any], *, left: bool = False) -> dict[str, Any]:
    """Padded with NaN: nothing of the padding may get into the result."""
    logp = padded(batch["logp"], left=left)
    return {
        "logprobs": logp.clone().requires_grad_(True),
        "old_logprobs": padded(batch["old"], left=left),
        "ref_logprobs": padded(batch["ref"], left=left),
        "entropy": padded(batch["entropy"], left=left),
        "mask": ~torch.isnan(logp),
        "advantages": torch.tensor(batch["advantage"], dtype=torch.float64),
        "episode_ids": batch["episode"],
    }


@pytest.mark.parametrize("normalizer", ["token", "step", "episode"])
@pytest.mark.parametrize("kl", ["k2", "k3"])
@pytest.mark.parametrize("seed", range(3))
def test_loss_and_gradient_equal_plain_loops(normalizer, kl, seed):
    batch = ragged(seed)
    inputs = tensors(batch, left=seed % 2 == 1)
    result = policy_loss(
        **inputs, clip_low=0.2, clip_high=0.28, kl_coefficient=0.3, kl_estimator=kl, entropy_coefficient=0.05,
        loss_normalizer=normalizer,
    )  # fmt: skip
    options = (normalizer, 0.2, 0.28, 0.3, kl, 0.05)
    assert result.loss.item() == pytest.approx(plain_loss(batch, *options), rel=1e-12)
    result.loss.backward()
    got = inputs["logprobs"].grad[inputs["mask"]]
    want = torch.tensor([g for row in plain_gradient(batch, *options) for g in row], dtype=torch.float64)
    assert torch.allclose(got, want, atol=1e-8)
    assert result.sums["tokens"] == len(want)


X = torch.zeros(2, 3)


@pytest.mark.parametrize(
    ("old", "advantages", "options", "words"),
    [
        (torch.zeros(2, 2), torch.zeros(2), {}, "one shape"),
        (X, torch.zeros(3), {}, r"advantages must have the shape \(2, 3\), .* or \(2,\), .* got \(3,\)"),
        (X, torch.zeros(2), {"denominator": 0}, "denominator must be above 0, got 0"),
        (X, torch.zeros(2), {"mask": X}, "no response token"),
        (X, torch.zeros(2), {"kl_coefficient": 0.1}, r"kl_coefficient = 0\.1 needs"),
        (X, torch.zeros(2), {"entropy_coefficient": 0.1}, r"entropy_coefficient = 0\.1 needs"),
        (X, torch.zeros(2), {"loss_normalizer": "episode"}, "one episode id"),
        (X, torch.zeros(2), {"loss_normalizer": "words"}, r"loss_normalizer must be .* got 'words'"),
        (X, torch.zeros(2), {"kl_estimator": "k1"}, "kl_estimator must be one of k2, k3, got 'k1'"),
    ],
)
def test_refusals(old, advantages, options, words):
    with pytest.raises(ValueError, match=words):
        policy_loss(X, old, advantages, **options)


@pytest.mark.parametrize("normalizer", ["step", "episode"])
def test_rows_without_a_response_token_do_not_count(normalizer):
    logp, advantages = torch.full((3, 2), -1.0), torch.tensor([1.0, 2.0, -1.0])
    mask = torch.tensor([[1, 1], [0, 0], [0, 1]])
    loss = policy_loss(logp, logp, advantages, mask, loss_normalizer=normalizer, episode_ids=[0, 1, 2]).loss
    assert loss.item() == pytest.approx(-(1 + 1 - 1) / 2)


# ---------------------------------------------------------------- importance weights


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
