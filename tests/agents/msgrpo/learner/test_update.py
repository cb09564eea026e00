"""One optimiser step against an independent, plain reference in float64; micro-batches, order and normalisers."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from agents.msgrpo import ConfigError, DivergenceError, MSGRPOConfig
from agents.msgrpo.learner.scoring import packing, scorer
from agents.msgrpo.learner.update import learning_rate, minibatches
from tests.agents.msgrpo.learner import learners as formulas
from tests.agents.msgrpo.learner.learners import V, error, gradients, in_float64, make_learner, plain, ragged_rows

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
    one, two = minibatches(range(100), 2, np.random.default_rng(0))
    assert sorted(one + two) == list(range(100))
    assert len(one) == 50
    assert 15 < sum(i < 50 for i in one) < 35
    assert [len(p) for p in minibatches([1, 2], 5, np.random.default_rng(0))] == [1, 1]


def test_minibatches_in_the_order_of_time(make_llama):
    """Three episodes of 4, 2 and 4 steps: the first optimiser step has their early steps, the second the late ones."""
    times = [0, 1, 2, 3, 0, 1, 0, 1, 2, 3]
    assert [*minibatches(times, 2, np.random.default_rng(0), times)] == [[0, 4, 6, 1, 5], [7, 2, 8, 3, 9]]
    config = replace(BASE, minibatches=2, old_logprobs="recompute", minibatch_order="time")
    rows = ragged_rows(5)
    one, two = (
        make_learner(make_llama, config).update(some, np.random.default_rng(seed), 1e-3).losses
        for some, seed in ((rows, 0), (sorted(rows, key=lambda row: row.step), 1))
    )
    assert one == pytest.approx(two, rel=1e-9)


@pytest.mark.parametrize("mode", ["sampling", "recompute"])
def test_old_logprobs_and_the_mismatch_that_is_reported(make_llama, mode):
    learner, rows = make_learner(make_llama, replace(BASE, old_logprobs=mode, kl_coefficient=0.0)), ragged_rows(8)
    off_by, exact = 0.25, learner.logprobs(rows)
    rows = [row._replace(logprobs=tuple((x - off_by).tolist())) for row, x in zip(rows, exact, strict=True)]
    metrics = learner.update(rows, np.random.default_rng(0), 1e-3).metrics()
    assert metrics["mismatch_mean"] == pytest.approx(off_by)
    assert metrics["mismatch_max"] == pytest.approx(off_by)
    assert metrics["mismatch_kl"] == pytest.approx(math.exp(off_by) - 1 - off_by, rel=1e-4)
    assert metrics["ratio"] == pytest.approx(math.exp(off_by) if mode == "sampling" else 1.0)
    silent = [row._replace(logprobs=None) for row in rows]  # as of engines that tell none
    if mode == "sampling":
        with pytest.raises(ValueError, match="no log-probabilities"):
            learner.update(silent, np.random.default_rng(0), 1e-3)
    else:
        assert "mismatch_mean" not in learner.update(silent, np.random.default_rng(0), 1e-3).metrics()


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


def test_schedules():
    config = MSGRPOConfig(iterations=11, warmup=1, learning_rate=1.0)
    linear, cosine = (replace(config, schedule=name) for name in ("linear", "cosine"))
    assert [learning_rate(config, i) for i in (0, 1, 10)] == [1.0, 1.0, 1.0]
    assert learning_rate(replace(config, warmup=4), 0) == 0.25
    assert [learning_rate(linear, i) for i in (6, 11)] == pytest.approx([0.5, 0.0])
    assert [learning_rate(cosine, i) for i in (1, 6, 11)] == pytest.approx([1.0, 0.5, 0.0])


@pytest.mark.parametrize("mixup", [0.0, 0.25, 1.0])
def test_a_reference_follows_the_policy_by_its_share(make_llama, mixup):
    learner = make_learner(make_llama, MSGRPOConfig(kl_coefficient=0.1, reference_mixup=mixup))
    own = dict(learner.reference._frozen.named_parameters())
    was = {name: each.clone() for name, each in own.items()}
    learner.reference.follow()
    for name, policy in learner.scorer.named_parameters():
        torch.testing.assert_close(own[name], torch.lerp(was[name], policy, mixup))
    assert bool(learner.reference.state_dict()) is bool(mixup)
    with pytest.raises(ConfigError, match=r"reference_mixup = 0\.1 .* set kl_coefficient above 0"):
        make_learner(make_llama, MSGRPOConfig(reference_mixup=0.1))
