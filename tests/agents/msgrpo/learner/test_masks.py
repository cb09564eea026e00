"""The learner's probabilities over what was allowed: value and gradient against a naive reading in double precision."""

import numpy as np
import pytest
import torch
from torch import Tensor

from agents.msgrpo import MSGRPOConfig
from agents.msgrpo.credit.batch import TokenRow
from agents.msgrpo.learner.scoring.logprobs import Masks, head_logprobs, linear_logprobs, logprobs_from_logits
from agents.msgrpo.learner.scoring.packing import pack
from agents.msgrpo.learner.scoring.scorer import TokenScorer, choose_ways, score_rows
from agents.turn import TokenSet
from tests.agents.msgrpo.learner.learners import (
    V,
    error,
    gradients,
    in_float64,
    make_learner,
    naive,
    plain,
    ragged_rows,
)
from tests.agents.msgrpo.surrogates import formulas

FEW = (TokenSet((2,)), TokenSet((0, 2, 7)), TokenSet((4, 7)), TokenSet((2,)), TokenSet((1, 2, 3, 4)))
MIXED = (TokenSet((2,)), None, TokenSet((4, 7)), TokenSet((0, 10), others=True), TokenSet((1, 2, 3, 4)))


@pytest.mark.parametrize("allowed", [FEW, MIXED])
@pytest.mark.parametrize("way", ["linear", "module", "logits"])
@pytest.mark.parametrize("with_bias", [True, False])
def test_value_and_gradient_equal_the_naive_ones(allowed, way, with_bias):
    torch.manual_seed(0)
    hidden, weight = (torch.randn(n, 6, dtype=torch.float64, requires_grad=True) for n in (5, 11))
    bias = torch.randn(11, dtype=torch.float64, requires_grad=True) if with_bias else None
    targets, upstream = torch.tensor([2, 7, 4, 2, 3]), torch.linspace(-1, 1, 5, dtype=torch.float64)
    whole = way != "linear"
    masks = Masks.of(allowed, 11, torch.device("cpu"), whole=whole)
    assert (masks.columns is not None) == (allowed is FEW and not whole)
    leaves = [hidden, weight, *([] if bias is None else [bias])]

    def head(x: Tensor) -> Tensor:
        return torch.nn.functional.linear(x, weight, bias)

    if way == "linear":
        got = linear_logprobs(hidden, weight, bias, targets, temperature=0.8, chunk=2, masks=masks)
    elif way == "module":
        got = head_logprobs(hidden, head, targets, temperature=0.8, chunk=2, masks=masks)
    else:
        got = logprobs_from_logits(head(hidden), targets, temperature=0.8, masks=masks)
    want = naive(head(hidden) / 0.8, targets.tolist(), allowed)
    for one, other in zip(got, want, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)
    grads, wanted = (
        torch.autograd.grad((logp * upstream + 0.3 * h * upstream**2).sum(), leaves) for logp, h in (got, want)
    )
    for one, other in zip(grads, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("others", [False, True])
def test_a_forced_token_has_probability_one_and_gradient_zero_exactly(others):
    torch.manual_seed(1)
    hidden = torch.randn(3, 6, requires_grad=True)
    weight = torch.randn(11, 6, requires_grad=True)
    only = TokenSet(tuple(i for i in range(11) if i != 5), others=True) if others else TokenSet((5,))
    masks = Masks.of((only,) * 3, 11, torch.device("cpu"))
    logp, entropy = linear_logprobs(hidden, weight, None, torch.tensor([5, 5, 5]), temperature=1.3, masks=masks)
    assert logp.tolist() == [0.0] * 3
    assert entropy.tolist() == [0.0] * 3
    torch.autograd.backward(logp.sum() + 3 * entropy.sum())
    for grad in (hidden.grad, weight.grad):
        assert grad is not None
        assert not grad.any()


def allowed_rows(seed: int) -> list[TokenRow]:
    """Ragged rows with sets around their tokens: few, all but some, and none at all; two differ in them alone."""
    rng = np.random.default_rng(seed)
    rows = []
    for row in ragged_rows(seed):
        sets: list[TokenSet | None] = []
        for token in row.response:
            drawn = {int(one) for one in rng.integers(0, V, 3)}
            kinds = (
                None,
                TokenSet(tuple(sorted({*drawn, token}))),
                TokenSet(tuple(sorted(drawn - {token})), others=True),
            )
            sets.append(kinds[int(rng.integers(3))])
        rows.append(row._replace(allowed=tuple(sets) if rng.random() < 0.8 else None))
    forced = tuple(TokenSet((token,)) for token in rows[0].response)
    return [*rows, rows[0]._replace(allowed=forced)]


@pytest.mark.parametrize("packing", ["tree", "rows"])
@pytest.mark.parametrize("head", ["linear", "module", "logits"])
def test_scores_of_packed_rows_are_those_that_each_has_alone(make_llama, packing, head):
    model = make_llama(V)
    rows = [row for seed in range(3) for row in allowed_rows(seed)]
    scorer = TokenScorer(model, temperature=1.25, chunk=4, autocast=None)
    choose_ways(scorer, packing)
    scorer.head = head
    batches = pack(rows, packing=packing, micro_batch_tokens=200, tree_tokens=60)
    for got, row in zip(score_rows(scorer, rows, batches), rows, strict=True):
        logits = model(torch.tensor([row.prompt + row.response])).logits[0].double() / 1.25
        places = logits[len(row.prompt) - 1 : -1]
        want, _ = naive(places, row.response, row.allowed or (None,) * len(row.response))
        torch.testing.assert_close(got.double(), want, atol=2e-6, rtol=1e-5)


def test_rows_that_differ_in_what_was_allowed_alone_are_scored_apart():
    free, forced = TokenRow((1, 2), (3, 4)), TokenRow((1, 2), (3, 4), (TokenSet((3,)), None))
    (tree,) = pack([free, forced, forced], packing="tree", micro_batch_tokens=100, tree_tokens=100)
    assert tree.input_ids.tolist() == [[1, 2, 3]]  # they are computed once
    assert tree.targets.tolist() == [3, 4, 3]  # the first place with two sets, the second with one
    assert tree.places.tolist() == [0, 1, 2, 1, 2, 1]


@pytest.mark.parametrize("packing", ["tree", "rows"])
def test_gradient_of_the_update_with_entropy_and_reference(make_llama, packing):
    """One step of the trainer against the loss written down naively, over the allowed logits, by autograd."""
    config = MSGRPOConfig(
        packing=packing, minibatches=1, entropy_coefficient=0.05, kl_coefficient=0.1, kl_estimator="k3",
        temperature=1.25, max_grad_norm=0.0, micro_batch_tokens=40, weight_decay=0.0,
    )  # fmt: skip
    rows = allowed_rows(7)
    learner = make_learner(make_llama, config)
    want = plain(learner, rows, in_float64(make_llama(V)), config, formulas.ppo())
    loss, found = gradients(learner, rows)
    assert loss == pytest.approx(want[0], rel=1e-9)
    assert error(found, want[1]) < 1e-8  # the formula's slopes are differences of its loss
