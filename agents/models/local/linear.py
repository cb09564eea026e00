"""Matrix products with weights: PyTorch's, or on a CPU in single precision those of oneDNN.

PyTorch calls MKL for single-precision products. Where MKL doesn't know the processor well (AMD), oneDNN, which PyTorch
has on board for other precisions, does the same products in less than half of the time (``perf/generation.py`` prints
both). Results are the same up to the order of additions.
"""

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor


@cache
def onednn_available() -> bool:
    """Whether this PyTorch has oneDNN's product of dense single-precision matrices, and it is right on a small case."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    x, weight, bias = torch.arange(6.0).view(2, 3), torch.arange(12.0).view(4, 3), torch.arange(4.0)
    try:
        with torch.no_grad():
            return torch.equal(_product(x, weight, bias), F.linear(x, weight, bias))
    except (AttributeError, RuntimeError, NotImplementedError):  # another version of PyTorch may do without it
        return False


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """``x @ weight.T + bias``: ``(T, in)``, ``(out, in)``, ``(out,)`` to ``(T, out)``. Differentiable once."""
    if x.device.type != "cpu" or x.dtype != torch.float32 or x.dim() != 2 or not len(x) or not onednn_available():
        return F.linear(x, weight, bias)
    if torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad):
        return _Linear.apply(x, weight, bias)  # type: ignore[no-any-return, no-untyped-call]
    return _product(x, weight, bias)


def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    # the operation that PyTorch's own compiler emits for a linear map on a CPU
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")  # type: ignore[no-any-return]


class _Linear(torch.autograd.Function):
    """The same with its derivative, whose products are oneDNN's too."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.biased = bias is not None
        return _product(x, weight, bias)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        wanted = ctx.needs_input_grad
        return (
            _product(grad, weight.t(), None) if wanted[0] else None,
            _product(grad.t(), x.t(), None) if wanted[1] else None,
            grad.sum(0) if ctx.biased and wanted[2] else None,
        )
