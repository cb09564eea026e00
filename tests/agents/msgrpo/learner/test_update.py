"""One optimiser step against an independent, plain reference in float64; micro-batches, order and normalisers."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

from agents.msgrpo import ConfigError, MSGRPOConfig
from agents.msgrpo.credit.batch import TokenRow
from agents.msgrpo.errors import DivergenceError
from agents.msgrpo.learner.prepare import checkpoint_layers
from agents.msgrpo.learner.scoring import packing, scorer
from agents.msgrpo.learner.update import learning_rate, minibatches
from tests.agents.msgrpo.learner.learners import V, error, gradients, in_float64, make_learner, plain, ragged_rows
from tests.agents.msgrpo.surrogates import formulas

BASE = MSGRPOConfig(
    minibatches=1, learning_rate=1e-3, kl_coefficient=0.2, entropy_coefficient=0.05, max_grad_norm=0.0, clip_low=0.2,
    clip_high=0.2,
)  # fmt: skip


def test_gradient_equals_the_plain_reference(make_llama, monkeypatch):
    """With clipping, KL and entropy active; a beginning of all prompts is computed once if micro-batches share it."""
    monkeypatch.setattr(packing, "QUERIES", 8)  # the shortest beginning that counts
    beginning = tuple(range(20))
    rows = [row._replace(prompt=beginning + row.prompt) for seed in (3, 4) for row in ragged_rows(seed)]
    config, want = replace(BASE, loss_normalizer="episode", tree_tokens=40, micro_batch_tokens=40), None
    for way, lean in product(("tree", "rows"), (False, True)):
        monkeypatch.setattr(scorer, "LEAN_FROM", 0 if lean else 10**9)
        learner = make_learner(make_llama, replace(config, packing=way))
        assert learner.scorer.lean == lean
        batches = learner.work.pack(rows)
        assert len(batches) > 1
        assert {batch.trunk and batch.trunk.ids for batch in batches} == {beginning if lean and way == "tree" else None}
        want = want or plain(learner, rows, in_float64(make_llama(V)), config, formulas.ppo())
        loss, found = gradients(learner, rows)
        assert loss == pytest.approx(want[0], rel=1e-9), (way, lean)
        assert error(found, want[1]) < 1e-8, (way, lean)  # the formula's slopes are differences of its loss


def test_an_episode_drawn_twice_counts_twice(make_llama):
    rows = [row for row in ragged_rows(5) if row.draw < 2]
    twice = rows + [row._replace(draw=9) for row in rows if row.draw == 1]
    config = replace(BASE, kl_coefficient=0.0, entropy_coefficient=0.0, loss_normalizer="episode")
    learner = make_learner(make_llama, config)
    _, both = gradients(learner, twice)
    _, first = gradients(learner, [row for row in rows if row.draw == 0])
    _, second = gradients(learner, [row for row in rows if row.draw == 1])
    for name in both:
        torch.testing.assert_close(both[name], (first[name] + 2 * second[name]) / 3, rtol=1e-9, atol=1e-13)


def test_minibatches_are_not_contiguous_in_time():
    """Mistake seen in the wild: first half of all episodes, then second half."""
    rows = list(range(100))
    parts = list(minibatches(rows, 2, np.random.default_rng(0)))
    assert sorted(parts[0] + parts[1]) == rows
    assert len(parts[0]) == 50
    assert 30 < np.mean(parts[0]) < 70
    assert 15 < sum(i < 50 for i in parts[0]) < 35
    assert [len(p) for p in minibatches([1, 2], 5, np.random.default_rng(0))] == [1, 1]


def test_minibatches_in_the_order_of_time(make_llama):
    """Three episodes of 4, 2 and 4 steps: the first optimiser step has their early steps, the second the late ones."""
    times = [0, 1, 2, 3, 0, 1, 0, 1, 2, 3]
    assert [*minibatches(times, 2, np.random.default_rng(0), times)] == [[0, 4, 6, 1, 5], [7, 2, 8, 3, 9]]
    rows, config = ragged_rows(5), replace(BASE, minibatches=2, old_logprobs="recompute")
    timed = sorted(rows, key=lambda row: row.step)

    def weights(rows: Sequence[TokenRow], seed: int, order: str) -> list[float]:
        learner = make_learner(make_llama, replace(config, minibatch_order=order))
        learner.update(rows, np.random.default_rng(seed), 1e-3)
        return torch.cat([each.detach().flatten() for each in learner.scorer.parameters()]).tolist()

    assert weights(rows, 0, "time") == pytest.approx(weights(timed, 1, "time"), rel=1e-9)
    assert weights(rows, 0, "shuffled") != pytest.approx(weights(rows, 1, "shuffled"), rel=1e-9)


def test_passes_and_minibatches_make_steps(make_llama):
    config = replace(BASE, update_passes=3, minibatches=2, kl_coefficient=0.0)
    stats = make_learner(make_llama, config, double=False).update(ragged_rows(7), np.random.default_rng(0), 1e-2)
    metrics = stats.metrics()
    assert metrics["optimizer_steps"] == 6
    assert metrics["kl_old"] > 0
    assert metrics["clip_fraction"] > 0


@pytest.mark.parametrize("mode", ["sampling", "recompute"])
def test_old_logprobs_and_the_mismatch_that_is_reported(make_llama, mode):
    config = replace(BASE, old_logprobs=mode, kl_coefficient=0.0)
    learner, rows = make_learner(make_llama, config), ragged_rows(8)
    exact = learner.logprobs(rows)
    off_by = 0.25
    rows = [row._replace(logprobs=tuple((x - off_by).tolist())) for row, x in zip(rows, exact, strict=True)]
    metrics = learner.update(rows, np.random.default_rng(0), 1e-3).metrics()
    assert metrics["mismatch_mean"] == pytest.approx(off_by)
    assert metrics["mismatch_max"] == pytest.approx(off_by)
    assert metrics["mismatch_kl"] == pytest.approx(math.exp(off_by) - 1 - off_by, rel=1e-4)
    assert metrics["ratio"] == pytest.approx(math.exp(off_by) if mode == "sampling" else 1.0)


def test_engines_without_logprobs_are_recomputed(make_llama):
    rows = [row._replace(logprobs=None) for row in ragged_rows(8)]
    metrics = make_learner(make_llama, BASE).update(rows, np.random.default_rng(0), 1e-3).metrics()
    assert metrics["ratio"] == pytest.approx(1.0)
    assert "mismatch_mean" not in metrics
    with pytest.raises(ValueError, match="no log-probabilities"):
        make_learner(make_llama, replace(BASE, old_logprobs="sampling")).update(rows, np.random.default_rng(0), 1e-3)


def test_nan_and_exploding_gradients_stop_before_the_weights_change(make_llama):
    rows = ragged_rows(9)
    for config, bad, words in [
        (BASE, [row._replace(advantage=math.nan) for row in rows], "nan"),
        (replace(BASE, abort_grad_norm=1e-3), rows, "abort_grad_norm"),
    ]:
        learner = make_learner(make_llama, config)
        before = [p.detach().clone() for p in learner.scorer.parameters()]
        with pytest.raises(DivergenceError, match=words):
            learner.update(bad, np.random.default_rng(0), 1e-3)
        assert all(torch.equal(a, b) for a, b in zip(before, learner.scorer.parameters(), strict=True))


@pytest.mark.parametrize("limit", [0.0, 1e-2, 1e6])
def test_gradients_are_scaled_down_to_their_largest_norm(make_llama, limit):
    """After one step Adam's first moment is 1 - beta1 times the gradient that it was given."""
    config = replace(BASE, max_grad_norm=limit)
    learner = make_learner(make_llama, config)
    (norm,) = learner.update(ragged_rows(9), np.random.default_rng(0), 1e-3).grad_norms
    moments = [state["exp_avg"].norm() for state in learner.optimizer.state_dict()["state"].values()]
    given = float(torch.stack(moments).norm()) / (1 - config.adam_beta1)
    assert norm > 1e-2  # what is reported is the norm before
    assert given == pytest.approx(min(norm, limit or math.inf), rel=1e-3)


def test_gradient_checkpointing_gives_the_same_gradient(make_llama):
    rows, found = ragged_rows(10), []
    for checkpointing in (False, True):
        learner = make_learner(make_llama, replace(BASE, kl_coefficient=0.0))
        if checkpointing:
            model: Any = learner.scorer.model
            model.train()
            checkpoint_layers(model)
        found.append(gradients(learner, rows)[1])
    for name in found[0]:
        torch.testing.assert_close(found[1][name], found[0][name], rtol=1e-10, atol=1e-14)


def test_schedules():
    config = MSGRPOConfig(iterations=11, warmup=1, learning_rate=1.0)
    assert [learning_rate(config, i) for i in (0, 1, 10)] == [1.0, 1.0, 1.0]
    assert learning_rate(replace(config, warmup=4), 0) == 0.25
    linear = replace(config, schedule="linear")
    assert learning_rate(linear, 6) == pytest.approx(0.5)
    assert learning_rate(linear, 11) == 0.0
    assert learning_rate(replace(config, schedule="cosine"), 6) == pytest.approx(0.5)


@pytest.mark.parametrize("mixup", [0.0, 0.25, 1.0])
def test_a_reference_follows_the_policy_by_its_share(make_llama, mixup):
    learner = make_learner(make_llama, MSGRPOConfig(kl_coefficient=0.1, reference_mixup=mixup))
    reference = learner.reference
    assert reference is not None
    own = dict(reference._frozen.named_parameters())
    was = {name: each.clone() for name, each in own.items()}
    reference.follow()
    for name, policy in learner.scorer.named_parameters():
        torch.testing.assert_close(own[name], torch.lerp(was[name], policy, mixup))
    assert bool(reference.state_dict()) is bool(mixup)


def test_a_moving_reference_that_nothing_is_held_to_is_refused(make_llama):
    with pytest.raises(ConfigError, match=r"reference_mixup = 0\.1 .* set kl_coefficient above 0"):
        make_learner(make_llama, MSGRPOConfig(reference_mixup=0.1))
