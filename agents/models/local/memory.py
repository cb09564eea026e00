"""Memory of generation: how much its caches may take, and what its weights hold beside the model's own."""

import torch
from torch import nn

from agents.models.local.llama_forward import LlamaWeights

_CPU_BYTES = 2**30
_GPU_SHARE = 0.5  # of what is unused when a batch comes: logits, prompts' attention and growing caches need the rest


def cache_bytes(device: torch.device) -> int:
    """Memory for the keys and values of all rows in flight."""
    if device.type != "cuda":
        return _CPU_BYTES
    free, _ = torch.cuda.mem_get_info(device)
    return int(unused_bytes(free, torch.cuda.memory_reserved(device), torch.cuda.memory_allocated(device)) * _GPU_SHARE)


def unused_bytes(free: int, reserved: int, allocated: int) -> int:
    """What a process can still allocate on a GPU.

    PyTorch's allocator keeps what tensors have given back, so after an update the driver has next to nothing free
    while most of the memory is unused.

    Args:
        free: bytes that the driver could hand out.
        reserved: bytes that PyTorch's allocator has taken from the driver.
        allocated: of those, bytes in tensors.
    """
    return free + max(0, reserved - allocated)


def bytes_beside(weights: LlamaWeights, model: nn.Module) -> int:
    """Bytes that weights read for the lean forward pass hold beside the model's own: copies and scaled factors."""
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    maps = [m for layer in weights.layers for m in (*layer.qkv, layer.out, *layer.gate_up, layer.down)]
    parts = [part for m in (*maps, weights.head) for part in (m.weight, m.bias, *(m.added or ())) if part is not None]
    return sum(part.nbytes for part in parts if part.untyped_storage().data_ptr() not in own)
