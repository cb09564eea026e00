"""Chunked log-probabilities, over all tokens or those that were allowed: values and gradients of the plain way."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from agents.msgrpo import MSGRPOConfig, TokenRow
from agents.msgrpo.learner.scoring.logprobs import Masks, head_logprobs, linear_logprobs, logprobs_from_logits
from agents.msgrpo.learner.scoring.packing import pack
from agents.turn import TokenSet
from tests.agents.msgrpo.learner import learners as formulas
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

CPU = torch.device("cpu")
FREE = (None,) * 5
FEW = (TokenSet((2,)), TokenSet((0, 2, 7)), TokenSet((4, 7)), TokenSet((2,)), TokenSet((1, 2, 3, 4)))
MIXED = (TokenSet((2,)), None, TokenSet((4, 7)), TokenSet((0, 10), others=True), TokenSet((1, 2, 3, 4)))


@pytest.mark.parametrize("allowed", [FREE, FEW, MIXED], ids=["free", "few", "mixed"])
@pytest.mark.parametrize("way", ["linear", "module", "logits"])
@pytest.mark.parametrize(("with_bias", "chunk", "entropy"), [(True, 2, 0.3), (False, 100, 0.3), (False, 1, 0.0)])
def test_value_and_gradient_equal_the_naive_ones(allowed, way, with_bias, chunk, entropy):
    torch.manual_seed(0)
    hidden, weight = (torch.randn(n, 6, dtype=torch.float64, requires_grad=True) for n in (5, 11))
    bias = torch.randn(11, dtype=torch.float64, requires_grad=True) if with_bias else None
    targets, upstream = torch.tensor([2, 7, 4, 2, 3]), torch.linspace(-1, 1, 5, dtype=torch.float64)
    masks = None if allowed is FREE else Masks.of(allowed, 11, CPU, whole=way != "linear")
    assert masks is None or (masks.columns is not None) == (allowed is FEW and way == "linear")
    options: dict[str, Any] = {"temperature": 0.8, "masks": masks}

    def head(x: Tensor) -> Tensor:
        return torch.nn.functional.linear(x, weight, bias)

    if way == "linear":
        got = linear_logprobs(hidden, weight, bias, targets, chunk=chunk, **options)
    elif way == "module":
        got = head_logprobs(hidden, head, targets, chunk=chunk, **options)
    else:
        got = logprobs_from_logits(head(hidden), targets, **options)
    want = naive(head(hidden) / 0.8, targets.tolist(), allowed)
    leaves = [hidden, weight, *([] if bias is None else [bias])]
    grads, wanted = (
        torch.autograd.grad((logp * upstream + entropy * h * upstream**2).sum(), leaves) for logp, h in (got, want)
    )
    for one, other in zip((*got, *grads), (*want, *wanted), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def test_bfloat16_products_keep_float32_statistics_and_a_frozen_head_gets_no_gradient():
    torch.manual_seed(0)
    hidden, weight = (torch.randn(n, 5, requires_grad=True) for n in (7, 11))
    targets = torch.randint(0, 11, (7,))
    logp, entropy = linear_logprobs(hidden.bfloat16(), weight, None, targets, chunk=2)
    assert logp.dtype == entropy.dtype == torch.float32
    exact, _ = logprobs_from_logits(hidden @ weight.t(), targets)
    torch.testing.assert_close(logp, exact, atol=0.05, rtol=0.05)
    torch.autograd.backward(linear_logprobs(hidden, weight.detach(), None, targets, chunk=2)[0].sum())
    assert hidden.grad is not None
    assert weight.grad is None
    torch.autograd.backward(logp.sum() + entropy.sum())
    assert weight.grad is not None
    assert weight.grad.dtype == torch.float32


def test_no_tensor_of_tokens_by_vocabulary_is_ever_made():
    largest = 0

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            nonlocal largest
            out = func(*args, **(kwargs or {}))
            for tensor in out if isinstance(out, (tuple, list)) else [out]:
                if isinstance(tensor, Tensor):
                    largest = max(largest, tensor.numel())
            return out

    hidden, weight = (torch.randn(n, 4, requires_grad=True) for n in (256, 500))
    with Watch():
        logp, entropy = linear_logprobs(hidden, weight, None, torch.zeros(256, dtype=torch.long), chunk=8)
        (logp + entropy).sum().backward()
    assert largest == 8 * 500


@pytest.mark.parametrize("others", [False, True])
def test_a_forced_token_has_probability_one_and_gradient_zero_exactly(others):
    torch.manual_seed(1)
    hidden, weight = (torch.randn(n, 6, requires_grad=True) for n in (3, 11))
    only = TokenSet(tuple(i for i in range(11) if i != 5), others=True) if others else TokenSet((5,))
    masks = Masks.of((only,) * 3, 11, CPU)
    logp, entropy = linear_logprobs(hidden, weight, None, torch.tensor([5, 5, 5]), temperature=1.3, masks=masks)
    assert logp.tolist() == entropy.tolist() == [0.0] * 3
    torch.autograd.backward(logp.sum() + 3 * entropy.sum())
    assert not torch.cat([hidden.grad, weight.grad]).any()  # type: ignore[list-item]


def test_rows_that_differ_in_what_was_allowed_alone_are_scored_apart():
    free, forced = TokenRow((1, 2), (3, 4)), TokenRow((1, 2), (3, 4), (TokenSet((3,)), None))
    (tree,) = pack([free, forced, forced], packing="tree", micro_batch_tokens=100, tree_tokens=100)
    assert tree.input_ids.tolist() == [[1, 2, 3]]  # they are computed once
    assert tree.targets.tolist() == [3, 4, 3]  # the first place with two sets, the second with one
    assert tree.places.tolist() == [0, 1, 2, 1, 2, 1]


def allowed_rows(seed: int) -> list[TokenRow]:
    """Ragged rows with sets around their tokens: few, all but some, and none at all; two differ in them alone."""
    rng, rows = np.random.default_rng(seed), []
    for row in ragged_rows(seed):
        sets: list[TokenSet | None] = []
        for token in row.response:
            drawn = {int(one) for one in rng.integers(0, V, 3)}
            few, others = tuple(sorted({*drawn, token})), tuple(sorted(drawn - {token}))
            sets.append((None, TokenSet(few), TokenSet(others, others=True))[int(rng.integers(3))])
        rows.append(row._replace(allowed=tuple(sets) if rng.random() < 0.8 else None))
    return [*rows, rows[0]._replace(allowed=tuple(TokenSet((token,)) for token in rows[0].response))]


@pytest.mark.parametrize("packing", ["tree", "rows"])
def test_an_update_s_gradient_is_over_what_was_allowed_with_entropy_and_reference(make_llama, packing):
    """One step of the trainer against the loss written down naively, over the allowed logits, by autograd."""
    config = MSGRPOConfig(
        packing=packing, minibatches=1, entropy_coefficient=0.05, kl_coefficient=0.1, kl_estimator="k3",
        temperature=1.25, max_grad_norm=0.0, micro_batch_tokens=40, weight_decay=0.0,
    )  # fmt: skip
    rows, learner = allowed_rows(7), make_learner(make_llama, config)
    want = plain(learner, rows, in_float64(make_llama(V)), config, formulas.ppo())
    loss, found = gradients(learner, rows)
    assert loss == pytest.approx(want[0], rel=1e-9)
    assert error(found, want[1]) < 1e-8  # the formula's slopes are differences of its loss
