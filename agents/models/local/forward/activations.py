"""Normalisation and activation of the lean forward pass, whose backward passes keep no more than they need.

PyTorch's own keep every step in between: at a few thousand tokens that is as much memory as all the rest of a layer.
"""

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor


def rms_norm(x: Tensor, weight: Tensor, eps: float, dtype: torch.dtype | None = None) -> Tensor:
    """Return ``x / rms(x) * weight`` over the last dimension, in ``dtype`` if one is given."""
    if torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad):
        normed: Tensor = _RMSNorm.apply(x, weight, eps, dtype)  # type: ignore[no-untyped-call]
        return normed
    return _normed(x, weight, eps, dtype)


def _normed(x: Tensor, weight: Tensor, eps: float, dtype: torch.dtype | None) -> Tensor:
    out = F.rms_norm(x, x.shape[-1:], weight, eps)
    return out if dtype is None else out.to(dtype)


def gated_silu(gate: Tensor, up: Tensor) -> Tensor:
    """Return ``silu(gate) * up``."""
    if torch.is_grad_enabled() and gate.requires_grad:
        gated: Tensor = _GatedSilu.apply(gate, up)  # type: ignore[no-untyped-call]
        return gated
    return F.silu(gate) * up


class _RMSNorm(torch.autograd.Function):
    """With ``n = x * r`` and ``r = 1 / rms(x)``, ``d/dx`` is ``r * (g w - n * mean(g w n))``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float, dtype: torch.dtype | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        return _normed(x, weight, eps, dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        norm = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)
        scale = norm.square_().div_(x.shape[-1]).add_(ctx.eps).rsqrt_()
        normed, slope = wide * scale, grads[0].to(wide.dtype)
        grad_weight = (slope * normed).sum(0).to(weight.dtype) if ctx.needs_input_grad[1] else None
        slope = slope * weight
        mean = (slope * normed).sum(-1, keepdim=True).div_(x.shape[-1])
        return slope.sub_(normed.mul_(mean)).mul_(scale).to(x.dtype), grad_weight, None, None


class _GatedSilu(torch.autograd.Function):
    """Keeps the two inputs alone: with ``s = sigmoid(gate)``, ``d silu`` is ``s * (1 + gate * (1 - s))``."""

    @staticmethod
    def forward(ctx: Any, gate: Tensor, up: Tensor) -> Tensor:
        ctx.save_for_backward(gate, up)
        return F.silu(gate).mul_(up)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        (gate, up), slope = ctx.saved_tensors, grads[0]
        grad_gate = torch.ops.aten.silu_backward(slope * up, gate)
        return grad_gate, F.silu(gate).mul_(slope)
