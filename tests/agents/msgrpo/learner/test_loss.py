"""Loss and surrogates against plain Python loops in float64, on random ragged batches, and importance weights."""

import math
import random
from collections.abc import Sequence

import pytest
import torch

from agents.msgrpo import PPO, SURROGATES, ConfigError, Tokens, policy_loss
from agents.msgrpo.learner.loss import importance_weights, loss_of
from tests.agents.msgrpo.learner import learners as formulas
from tests.agents.msgrpo.learner.learners import Row, by_differences, flat, ppo_token, ragged, through_loss


@pytest.mark.parametrize("normalizer", ["token", "step", "episode"])
@pytest.mark.parametrize("kl", ["k2", "k3"])
@pytest.mark.parametrize("seed", range(3))
def test_loss_and_gradient_equal_plain_loops(normalizer, kl, seed):
    rows, rng = ragged(seed, 5), random.Random(seed)
    entropies, episodes = [[rng.random() for _ in row.logp] for row in rows], [rng.randint(0, 2) for _ in rows]
    z = {"token": sum(len(row.logp) for row in rows), "step": len(rows), "episode": len(set(episodes))}[normalizer]

    def plain(some: Sequence[Row]) -> float:
        total = 0.0
        for row, entropy in zip(some, entropies, strict=True):
            for logp, old, ref, a, h in zip(*row, entropy, strict=True):
                r = ref - logp
                total += ppo_token(math.exp(logp - old), a, 0.2, 0.28) - 0.05 * h
                total += 0.3 * (r**2 / 2 if kl == "k2" else math.exp(r) - 1 - r)
        return total / z

    def padded(values: list[list[float]]) -> torch.Tensor:
        """With NaN, of which nothing may get into the result."""
        longest = max(map(len, values)) + 1
        pairs = [(each, [math.nan] * (longest - len(each))) for each in values]
        return torch.tensor([pad + each if seed % 2 else each + pad for each, pad in pairs], dtype=torch.float64)

    logp, old, ref = (padded([row[k] for row in rows]) for k in range(3))
    mask, advantages = ~torch.isnan(logp), torch.tensor([row.advantages[0] for row in rows], dtype=torch.float64)
    logp.requires_grad_(True)
    result = policy_loss(
        logp, old, advantages, mask, ref_logprobs=ref, entropy=padded(entropies), clip_low=0.2, clip_high=0.28,
        kl_coefficient=0.3, kl_estimator=kl, entropy_coefficient=0.05, loss_normalizer=normalizer, episode_ids=episodes,
    )  # fmt: skip
    assert result.loss.item() == pytest.approx(plain(rows), rel=1e-12)
    result.loss.backward()
    assert logp.grad is not None
    assert torch.allclose(logp.grad[mask], flat(by_differences(plain, rows)), atol=1e-8)
    assert result.sums["tokens"] == mask.sum()
    own = SURROGATES.make("gspo", {"clip_low": 0.05, "clip_high": 0.05})
    other = policy_loss(logp, old, advantages, mask, surrogate=own, denominator=2.0).loss
    assert other.item() == pytest.approx(through_loss(own, rows, denominator=2.0).loss, rel=1e-12)


X = torch.zeros(2, 3)


@pytest.mark.parametrize(
    ("old", "advantages", "options", "words"),
    [
        (torch.zeros(2, 2), torch.zeros(2), {}, "one shape"),
        (X, torch.zeros(2), {"entropy_coefficient": 0.1}, r"entropy_coefficient = 0\.1 needs"),
        (X, torch.zeros(2), {"loss_normalizer": "words"}, r"loss_normalizer must be .* got 'words'"),
        (X, torch.zeros(3), {}, r"advantages must have the shape \(2, 3\), .* or \(2,\), .* got \(3,\)"),
        (X, torch.zeros(2), {"denominator": 0}, "denominator must be above 0, got 0"),
        (X, torch.zeros(2), {"mask": X}, "no response token"),
        (X, torch.zeros(2), {"kl_coefficient": 0.1}, r"kl_coefficient = 0\.1 needs"),
        (X, torch.zeros(2), {"loss_normalizer": "episode"}, "one episode id"),
        (X, torch.zeros(2), {"kl_estimator": "k1"}, "kl_estimator must be one of k2, k3, got 'k1'"),
    ],
)
def test_refusals(old, advantages, options, words):
    with pytest.raises(ValueError, match=words):
        policy_loss(X, old, advantages, **options)


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


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("name", "settings", "formula"),
    [
        ("ppo", {"clip_high": 0.28}, formulas.ppo(0.2, 0.28)),
        ("ppo", {"dual_clip": 1.3}, formulas.ppo(dual=1.3)),
        ("cispo", {"clip_high": 0.28}, formulas.cispo(0.8, 1.28)),
        ("cispo", {"cap": 1.5}, formulas.cispo(0.0, 1.5)),
    ],
)
def test_token_surrogates(name, settings, formula, seed):
    rows = ragged(seed, per_token=seed % 2 == 1)
    got = through_loss(SURROGATES.make(name, settings), rows, denominator=3.0)
    loss, gradient = formula(rows, {})
    assert got.loss == pytest.approx(loss / 3, rel=1e-12)
    assert torch.allclose(flat(got.gradient), flat(gradient) / 3, atol=1e-8)
    if name == "cispo":  # its log counts weights, and every gradient is kept
        ratios = [math.exp(new - old) for row in rows for new, old in zip(row.logp, row.old, strict=True)]
        low, high = (0.0, 1.5) if "cap" in settings else (0.8, 1.28)
        assert got.sums["clipped_low"] == sum(ratio < low for ratio in ratios)
        assert got.sums["clipped_high"] == sum(ratio > high for ratio in ratios)


def test_a_dual_clip_bounds_what_a_negative_advantage_costs():
    """By hand, ratios 4, 2 and 4: the first is cut at 3, where its gradient ends; a positive advantage is as ever."""
    row = Row([math.log(0.8), math.log(0.8), math.log(0.8)], [math.log(0.2), math.log(0.4), math.log(0.2)], [0.0] * 3,
              [-2.0, -2.0, 5.0])  # fmt: skip
    got = through_loss(SURROGATES.make("ppo", {"dual_clip": 3.0}), [row])
    assert got.loss == pytest.approx(3 * 2 + 2 * 2 - 1.2 * 5)
    assert got.gradient[0] == pytest.approx([0.0, 2 * 2, 0.0])
    assert (got.sums["clipped_low"], got.sums["clipped_high"]) == (0, 2)
    unbounded = through_loss(SURROGATES.make("ppo"), [row])
    assert unbounded.loss == pytest.approx(4 * 2 + 2 * 2 - 1.2 * 5)
    assert unbounded.gradient[0] == pytest.approx([4 * 2, 2 * 2, 0.0])


@pytest.mark.parametrize("seed", range(2))
def test_gspo_clips_whole_responses(seed):
    """With its own normaliser, the mean of each response, it is the paper's sequence objective."""
    rows = ragged(seed)
    surrogate = SURROGATES.make("gspo", {"clip_low": 0.05, "clip_high": 0.08})
    weights = [1 / len(row.logp) for row in rows]
    got = through_loss(surrogate, rows, denominator=len(rows), row_weights=weights)
    sequences = [row._replace(advantages=[row.advantages[0] / len(row.logp)] * len(row.logp)) for row in rows]
    loss, gradient = formulas.gspo(0.05, 0.08)(sequences, {})
    assert got.loss == pytest.approx(loss / len(rows), rel=1e-12)
    assert torch.allclose(flat(got.gradient), flat(gradient) / len(rows), atol=1e-8)
    whole = [[g == 0 for g in row] for row in got.gradient]
    assert all(len(set(row)) == 1 for row in whole)  # a response is clipped as a whole or not at all
    assert 0 < sum(row[0] for row in whole) < len(rows)
    assert got.sums["clipped_low"] + got.sums["clipped_high"] == sum(map(sum, whole))


# ---------------------------------------------------------------- every registered surrogate


PLAIN = [name for name in SURROGATES.names if not SURROGATES.make(name).needs and name not in ("nft", "p3o", "llds")]
"""They need nothing but tokens; the others are told of rows as well."""


@pytest.mark.parametrize("name", PLAIN)
def test_rows_do_not_look_at_each_other_and_have_no_gradient_without_an_advantage(name):
    """So micro-batches may hold any of them: each row alone has the gradient that it has among the others."""
    rows, surrogate = ragged(8, per_token=True), SURROGATES.make(name)
    together = through_loss(surrogate, rows)
    for row, gradient in zip(rows, together.gradient, strict=True):
        assert through_loss(surrogate, [row]).gradient[0] == pytest.approx(gradient, rel=1e-12, abs=1e-15)
    got = through_loss(surrogate, [row._replace(advantages=[0.0] * len(row.logp)) for row in rows])
    assert not flat(got.gradient).any()
    assert got.sums["clipped_low"] == got.sums["clipped_high"] == 0


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_large_ratios_are_finite_in_float32(name, sign):
    """A token that was certain and isn't any more, and the reverse: 30 nats either way."""
    logp = torch.tensor([-30.0, -0.1, -0.1], requires_grad=True)
    told = Tokens(logp, torch.tensor([-0.1, -30.0, -0.1]), torch.full((3,), sign), torch.tensor([2, 1]))
    result = loss_of(told, SURROGATES.make(name), 3.0)
    result.loss.backward()
    assert torch.isfinite(logp.grad).all()  # type: ignore[arg-type]
    assert torch.isfinite(result.loss)
