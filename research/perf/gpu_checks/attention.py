"""FlexAttention on token trees beside attention with a dense mask: error, speed, memory."""

import warnings
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from recipe_cost import Shape

from agents.models.local.forward import repeat_heads
from agents.msgrpo.learner import random_trees, tree_attention, tree_blocks, tree_mask, why_no_tree_attention
from gpu_checks.machine import Memory, seconds_of


def compare(shape: Shape, batch: int, length: int, dtype: torch.dtype, device: torch.device) -> dict[str, Any]:
    """Return one layer's attention within random trees, forward and (on a GPU) backward."""
    result: dict[str, Any] = {"batch": batch, "length": length, "heads": shape.heads, "kv_heads": shape.kv_heads}
    result["why_not"] = why_no_tree_attention(shape.heads, shape.kv_heads, shape.head_dim, dtype, device)
    trained = device.type == "cuda"
    if trained and result["why_not"]:
        return result
    rng = torch.Generator().manual_seed(0)
    end = random_trees(batch, length, rng)
    mask = tree_mask(end).to(device)
    blocks = tree_blocks(end, device)
    sizes = [(batch, n, length, shape.head_dim) for n in (shape.heads, shape.kv_heads, shape.kv_heads)]
    q, k, v = (torch.randn(size, generator=rng).to(device, dtype).requires_grad_(trained) for size in sizes)
    groups = shape.heads // shape.kv_heads

    def by_blocks() -> torch.Tensor:
        return tree_attention(q, k, v, blocks)

    def dense() -> torch.Tensor:
        return F.scaled_dot_product_attention(q, repeat_heads(k, groups), repeat_heads(v, groups), attn_mask=mask)

    result["blocks_not_computed"] = float(blocks.sparsity()) / 100
    with torch.set_grad_enabled(trained), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "flex_attention called without torch.compile")  # on a CPU it is so on purpose
        a, b = by_blocks().detach(), dense().detach()
        result["largest_relative_difference"] = float((a - b).abs().max() / b.abs().max())
        for name, way in (("blocks", by_blocks), ("dense", dense)):
            memory = Memory(device)
            memory.reset()
            result[f"{name}_forward_seconds"] = seconds_of(way, device, times=3)
            if trained:
                result[f"{name}_both_seconds"] = seconds_of(lambda way=way: way().sum().backward(), device, times=3)
            result[f"{name}_peak"] = memory.peak()
    return result
