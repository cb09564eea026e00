"""Linear maps of a model as the lean forward pass applies them: plain, fused with others, or with LoRA beside them."""

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
