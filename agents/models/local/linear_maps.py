"""Linear maps of a model as the lean forward pass applies them: plain, fused with others, or with LoRA beside them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812  (the name that everyone uses)
from torch import Tensor, nn


class LowRank(NamedTuple):
    """What LoRA adds to a map: ``up @ down``, with ``down (rank, in)``, ``up (out, rank)`` and the scale in ``up``."""

    down: Tensor
    up: Tensor


class Linear(NamedTuple):
    """Weights of one linear map: ``weight (out, in)`` and ``bias (out,)`` or ``None``, and what is added to it."""

    weight: Tensor
    bias: Tensor | None
    added: LowRank | None = None

    def __call__(self, x: Tensor) -> Tensor:
        """``(T, in)`` to ``(T, out)``."""
        y = F.linear(x, self.weight, self.bias)
        return y if self.added is None else torch.addmm(y, F.linear(x, self.added.down), self.added.up.t())


def is_plain_lora(module: nn.Module) -> bool:
    """A peft LoRA layer over a plain linear map, whose adapters add a matrix and do nothing else."""
    return (
        type(getattr(module, "base_layer", None)) is nn.Linear
        and hasattr(module, "get_delta_weight")
        and hasattr(module, "lora_A")
        and not any(getattr(module, "use_dora", {}).values())
        and not any(getattr(module, "lora_bias", {}).values())
    )


def read_linear(module: Any, *, merge: bool) -> Linear:
    """The map that a module computes now, active LoRA adapters added in.

    ``merge`` adds them to a copy of the weights; without it they stay factors, and no copy is made.
    """
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
    """Maps of the same input as one, if ``fuse``, or as they are."""
    if not fuse:
        return tuple(maps)
    biases = [m.bias for m in maps if m.bias is not None]
    # some with and some without a bias doesn't occur in these models; keep them apart rather than guess
    if biases and len(biases) != len(maps):
        return tuple(maps)
    return (Linear(torch.cat([m.weight for m in maps]), torch.cat(biases) if biases else None),)


def apply(maps: Sequence[Linear], x: Tensor) -> Tensor:
    """All maps' outputs of ``x (T, in)`` side by side."""
    if len(maps) == 1:
        return maps[0](x)
    return torch.cat([m(x) for m in maps], dim=-1)
