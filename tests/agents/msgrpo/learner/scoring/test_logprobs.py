"""Chunked log-probabilities: value and gradient equal to the whole matrix's, and memory that doesn't grow with it."""

import pytest
import torch

from agents.msgrpo.learner.scoring.logprobs import head_logprobs, linear_logprobs, logprobs_from_logits


def inputs(n: int = 7, d: int = 5, v: int = 11, dtype: torch.dtype = torch.float64):  # type: ignore[no-untyped-def]
    torch.manual_seed(0)
    hidden, weight = (torch.randn(k, d, dtype=dtype, requires_grad=True) for k in (n, v))
    return hidden, weight, torch.randn(v, dtype=dtype, requires_grad=True), torch.randint(0, v, (n,))


@pytest.mark.parametrize("chunk", [1, 3, 7, 100])
@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("entropy", [0.0, 0.7])
def test_equal_to_the_whole_matrix(chunk, with_bias, entropy):
    hidden, weight, bias, targets = inputs()
    upstream = torch.linspace(-1, 1, 7, dtype=torch.float64)
    grads = []
    for way in ("chunks", "whole", "module"):
        b = bias if with_bias else None
        if way == "chunks":
            logp, h = linear_logprobs(hidden, weight, b, targets, temperature=1.25, chunk=chunk)
        elif way == "whole":
            logits = hidden @ weight.t() + (b if b is not None else 0)
            logp, h = logprobs_from_logits(logits, targets, temperature=1.25)
        else:
            head = torch.nn.functional.linear
            logp, h = head_logprobs(hidden, lambda x: head(x, weight, b), targets, temperature=1.25, chunk=chunk)  # noqa: B023
        leaves = [hidden, weight, bias] if with_bias else [hidden, weight]
        grads.append([logp, h, *torch.autograd.grad((logp * upstream + entropy * h * upstream**2).sum(), leaves)])
    for other in (grads[0], grads[2]):
        for got, want in zip(other, grads[1], strict=True):
            torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-12)


def test_frozen_head_gets_no_gradient():
    hidden, weight, _, targets = inputs()
    logp, _ = linear_logprobs(hidden, weight.detach(), None, targets, chunk=2)
    logp.sum().backward()
    assert hidden.grad is not None
    assert weight.grad is None


def test_bfloat16_products_keep_float32_statistics():
    hidden, weight, _, targets = inputs(dtype=torch.float32)
    logp, entropy = linear_logprobs(hidden.bfloat16(), weight, None, targets, chunk=2)
    assert logp.dtype == entropy.dtype == torch.float32
    exact, _ = logprobs_from_logits(hidden @ weight.t(), targets)
    torch.testing.assert_close(logp, exact, atol=0.05, rtol=0.05)
    (logp.sum() + entropy.sum()).backward()
    assert weight.grad is not None
    assert weight.grad.dtype == torch.float32


def test_no_tensor_of_tokens_by_vocabulary_is_ever_made():
    from torch.utils._python_dispatch import TorchDispatchMode

    largest = 0

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            nonlocal largest
            out = func(*args, **(kwargs or {}))
            for tensor in out if isinstance(out, (tuple, list)) else [out]:
                if isinstance(tensor, torch.Tensor):
                    largest = max(largest, tensor.numel())
            return out

    hidden, weight, _, targets = inputs(256, 4, 500, dtype=torch.float32)
    with Watch():
        logp, entropy = linear_logprobs(hidden, weight, None, targets, chunk=8)
        (logp + entropy).sum().backward()
    assert largest == 8 * 500
