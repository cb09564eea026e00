"""The layers of the lean forward pass: linear maps plain, fused or with LoRA beside them; normalisation and activation.

Backward passes keep no more than they need: PyTorch's own keep every step in between, at a few thousand tokens as much
memory as all the rest of a layer.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn


class LowRank(NamedTuple):
    """LoRA's addition to a map: ``up @ down``, with ``down (rank, in)``, ``up (out, rank)`` and the scale in ``up``."""

    down: Tensor
    up: Tensor


class Linear(NamedTuple):
    """Weights of one linear map: ``weight (out, in)``, ``bias (out,)`` or ``None``, and an addition."""

    weight: Tensor
    bias: Tensor | None
    added: LowRank | None = None

    def only(self, index: Tensor) -> "Linear":
        """Return the map to some of the outputs ``(n,)``."""
        bias = None if self.bias is None else self.bias.index_select(0, index)
        added = None if self.added is None else self.added._replace(up=self.added.up.index_select(0, index))
        return Linear(self.weight.index_select(0, index), bias, added)

    def __call__(self, x: Tensor) -> Tensor:
        """Map ``(T, in)`` to ``(T, out)``."""
        if self.added is None:
            return F.linear(x, self.weight, self.bias)
        y: Tensor = _WithLowRank.apply(x, self.weight, self.bias, *self.added)  # type: ignore[no-untyped-call]
        return y


class _WithLowRank(torch.autograd.Function):
    """``x @ weight.T + bias + (x @ down.T) @ up.T`` in the type of ``x``, summed in place. Frozen weights of another
    type are converted in both passes rather than kept twice."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, down: Tensor, up: Tensor) -> Tensor:
        inner = x @ down.to(x.dtype).t()
        y = F.linear(x, weight.to(x.dtype), None if bias is None else bias.to(x.dtype))
        ctx.save_for_backward(x, weight, down, up, inner)
        return y.addmm_(inner, up.to(x.dtype).t())

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (x, weight, down, up, inner), slope = ctx.saved_tensors, grads[0]
        needs = ctx.needs_input_grad
        grad_inner = slope @ up.to(x.dtype)
        return (
            (slope @ weight.to(x.dtype)).addmm_(grad_inner, down.to(x.dtype)) if needs[0] else None,
            (slope.t() @ x).to(weight.dtype) if needs[1] else None,
            slope.sum(0) if needs[2] else None,
            (grad_inner.t() @ x).to(down.dtype),
            (slope.t() @ inner).to(up.dtype),
        )


def is_plain_lora(module: nn.Module) -> bool:
    """Report whether this is a peft LoRA layer over a plain linear map whose adapters add a matrix and do no more."""
    plain = type(getattr(module, "base_layer", None)) is nn.Linear
    return plain and hasattr(module, "lora_A") and adds_a_matrix(module)


def adds_a_matrix(module: nn.Module) -> bool:
    """Report whether the adapters of a peft layer add a matrix to its weight and do no more (DoRA scales the sum,
    ``lora_bias`` adds to the bias, and aLoRA depends on the tokens)."""
    more = ("use_dora", "lora_variant", "lora_bias")
    return hasattr(module, "get_delta_weight") and not any(any(getattr(module, name, {}).values()) for name in more)


def read_linear(module: Any, *, merge: bool) -> Linear:
    """Return a module's map as it is now: ``merge`` adds active LoRA adapters to a copy, else they stay factors."""
    if type(module) is nn.Linear:
        return Linear(module.weight, module.bias)
    base = module.base_layer
    weight, dtype = base.weight, base.weight.dtype
    on = not module.disable_adapters and not module.merged
    adapters = [adapter for adapter in module.active_adapters if adapter in module.lora_A] if on else []
    if not adapters:
        return Linear(weight, base.bias)
    if merge:
        for adapter in adapters:
            weight = weight + module.get_delta_weight(adapter).to(dtype)
        return Linear(weight, base.bias)
    down = torch.cat([module.lora_A[adapter].weight for adapter in adapters])
    up = torch.cat([module.lora_B[adapter].weight * module.scaling[adapter] for adapter in adapters], dim=1)
    return Linear(weight, base.bias, LowRank(down.to(dtype), up.to(dtype)))


def fused(maps: Sequence[Linear], fuse: bool) -> tuple[Linear, ...]:
    """Return maps of the same input as one, if ``fuse``, or as they are."""
    if not fuse:
        return tuple(maps)
    biases = [m.bias for m in maps if m.bias is not None]
    # some with and some without a bias doesn't occur in these models; keep them apart rather than guess
    if biases and len(biases) != len(maps):
        return tuple(maps)
    return (Linear(torch.cat([m.weight for m in maps]), torch.cat(biases) if biases else None),)


def outputs(maps: Sequence[Linear], x: Tensor, widths: Sequence[int]) -> Sequence[Tensor]:
    """Return each map's output for ``x (T, in)``; one that stands for several is cut into their ``widths``."""
    return [each(x) for each in maps] if len(maps) > 1 else torch.split(maps[0](x), list(widths), dim=-1)


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
