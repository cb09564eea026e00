"""Every surrogate and normaliser through the learner: the gradient of the weights against plain loops in float64."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from agents.msgrpo import MSGRPOConfig, TokenRow
from agents.msgrpo.credit import Batch
from agents.msgrpo.normalizers import NORMALIZERS
from tests.agents.msgrpo.hand_made import batch, trajectory
from tests.agents.msgrpo.learner import learners as formulas
from tests.agents.msgrpo.learner.learners import Row, V, error, gradients, in_float64, make_learner, plain, ragged_rows

BASE = MSGRPOConfig(minibatches=1, learning_rate=1e-3, entropy_coefficient=0.0, max_grad_norm=0.0)

MORE: dict[str, Callable[[Sequence[Row], Sequence[int]], float]] = {}
"""The terms that surrogates add to the loss, of rows and the episode of each."""

WAYS: dict[str, tuple[dict[str, Any], formulas.Formula]] = {
    "ppo": ({}, formulas.ppo()),
    "gspo": ({"clip_low": 0.05, "clip_high": 0.05}, formulas.gspo(0.05, 0.05)),
    "cispo": ({}, formulas.cispo()),
}


def played(rows: Sequence[TokenRow]) -> Batch:
    """Two groups of two episodes each, which these rows are the steps of."""
    made = []
    for number in range(4):
        own = [row for row in rows if row.trajectory == number]
        rewards = [0.0] * (len(own) - 1) + [[1.0, 0.25, -0.5, 2.0][number]]
        made.append(
            trajectory(
                rewards, group=number // 2, success=number in (0, 3), prompt_ids=tuple(t.prompt for t in own),
                response_ids=tuple(t.response for t in own),
            )
        )  # fmt: skip
    return batch(*made)


def more_of(name: str, rows: Sequence[TokenRow]) -> Callable[[Sequence[Row]], float] | None:
    """The term that a surrogate adds, as a function of the rows."""
    episodes = [row.draw for row in rows]
    return (lambda tokens: MORE[name](tokens, episodes)) if name in MORE else None


def configured(name: str, **settings: Any) -> MSGRPOConfig:
    return replace(BASE, surrogate=name, method_settings={"surrogate": {name: WAYS[name][0]}}, **settings)


@pytest.mark.parametrize("name", WAYS)
def test_the_gradient_equals_plain_loops_whatever_the_micro_batches(make_llama, name):
    """Off policy, in micro-batches of several sizes; rows get what is said of them and not of their neighbours."""
    rows, want = ragged_rows(3), None
    for packing, budget, order in [("tree", 16, 1), ("rows", 1, -1), ("tree", 10_000, -1)]:
        config = configured(name, packing=packing, micro_batch_tokens=budget, tree_tokens=9)
        learner, ordered = make_learner(make_llama, config), rows[::order]
        want = want or plain(
            learner, rows, in_float64(make_llama(V)), config, WAYS[name][1], played(rows), more_of(name, rows)
        )
        loss, gradient = gradients(learner, ordered, batch=played(rows))
        assert loss == pytest.approx(want[0], rel=1e-8)
        assert error(gradient, want[1]) < 1e-8  # some of the reference's slopes are differences of the plain loss


@pytest.mark.parametrize("normalizer", NORMALIZERS.names)
def test_every_normaliser_equals_plain_loops(make_llama, normalizer):
    rows, want = [*ragged_rows(4), *ragged_rows(5)], None
    for packing, budget in [("tree", 1), ("rows", 30), ("tree", 10_000)]:
        config = configured(
            "cispo", packing=packing, micro_batch_tokens=budget, loss_normalizer=normalizer, minibatch_order="time"
        )
        learner = make_learner(make_llama, config)
        want = want or plain(learner, rows, in_float64(make_llama(V)), config, WAYS["cispo"][1])
        loss, gradient = gradients(learner, rows)
        assert loss == pytest.approx(want[0], rel=1e-10)
        assert error(gradient, want[1]) < 1e-10


@pytest.mark.parametrize("name", ["step", "episode", "response", "constant"])
def test_a_minibatch_estimates_the_whole_without_bias(name):
    """Over all minibatches of 3 of 7 rows, equally likely, the mean loss is that of all rows: any loss of the rows."""
    rows = ragged_rows(6)[:7]
    normalizer = NORMALIZERS.make(name)
    values = [0.3, -2.0, 1.7, 0.9, -0.4, 5.0, 1.1]  # the loss of every token of a row

    def loss(part: Sequence[int]) -> float:
        z, weights = normalizer.weigh(rows, part)
        weights = [1.0] * len(part) if weights is None else weights
        lengths = [len(rows[i].response) for i in part]
        return sum(w * n * values[i] for i, w, n in zip(part, weights, lengths, strict=True)) / z

    parts = list(itertools.combinations(range(7), 3))
    assert np.mean([loss(part) for part in parts]) == pytest.approx(loss(range(7)), rel=1e-12)
