"""Attention within token trees by FlexAttention (Dong et al., arXiv 2412.05496), which needs no dense mask.

In depth-first order token ``j`` is seen by the tokens ``j .. subtree_end[j] - 1`` and by no other, so the least and the
greatest ``subtree_end`` of every block of columns tell which blocks of the matrix are empty, which are full, and which
have to be looked at token by token. A compiled kernel skips the first kind and looks up the third.

It is registered with transformers as an attention implementation that is ``sdpa`` for everything but trees.
"""

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from agents.models.local.forward.llama_forward import repeat_heads
from agents.msgrpo.learner.scoring.packing import tree_mask

TREE_ATTENTION = "textbench_trees"
"""What the implementation is called in transformers' registry."""

BLOCK = 128  # tokens; FlexAttention's own default
_LEAST_BLOCKS = 2
_TRIED_SHAPES = ((1, 200), (2, 300))  # another length and batch compiles the kernel for any


def tree_blocks(subtree_end: Tensor, device: torch.device) -> Any:
    """Return the ``BlockMask`` of trees (B, L), given on the host.

    Lengths are rounded up to whole blocks, at least two: kernels are compiled anew for what doesn't divide, and for
    sizes of 1. Added tokens see themselves alone.
    """
    batch, length = subtree_end.shape
    count = max(_LEAST_BLOCKS, -(-length // BLOCK))
    added = torch.arange(length, count * BLOCK) + 1
    end = torch.cat([subtree_end, added.expand(batch, -1)], dim=1)
    greatest, least = (each.view(batch, 1, 1, count) for each in end.view(batch, count, BLOCK).aminmax(dim=-1)[::-1])
    row, column = torch.arange(count)[:, None], torch.arange(count)
    # the first token of a row block is the one that most columns reach, its last one the one that fewest do
    reached = (column == row) | ((column < row) & (greatest > row * BLOCK))  # (B, 1, rows, columns)
    full = (column < row) & (least >= (row + 1) * BLOCK)
    end = end.to(device, torch.int32, non_blocking=True)

    def sees(b: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return (key <= query) & (query < end[b, key])

    some_number, some = _listed(reached & ~full)
    full_number, full_ones = _listed(full)
    blocks = BlockMask.from_kv_blocks(some_number, some, full_number, full_ones, BLOCK_SIZE=BLOCK, mask_mod=sees)
    return blocks.to(device)


def _listed(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Return how many blocks every row has, and which, in ascending order before the others."""
    order = blocks.int().argsort(dim=-1, descending=True, stable=True)
    return blocks.sum(-1, dtype=torch.int32), order.int()


def attend(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Any,
    scaling: float | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Attend by FlexAttention if the mask is one of blocks, else by ``sdpa``, as a function of transformers.

    Queries ``(B, H, L, D)``, keys and values ``(B, K, L, D)``; returns ``(B, L, H, D)``.
    """
    if not isinstance(attention_mask, BlockMask):
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        out: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **options
        )
        return out
    return tree_attention(query, key, value, attention_mask, scaling).transpose(1, 2).contiguous(), None


def tree_attention(query: Tensor, key: Tensor, value: Tensor, blocks: Any, scaling: float | None = None) -> Tensor:
    """Return attention ``(B, H, L, D)`` of queries ``(B, H, L, D)`` on keys and values ``(B, K, L, D)`` in trees."""
    kind = query.device.type
    # rotated queries and keys may have another type than values; the products are done in autocast's
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else value.dtype
    groups = query.shape[1] // key.shape[1]
    shared = groups & (groups - 1) == 0  # kernels share keys among a power of two of query heads
    if not shared:
        key, value = repeat_heads(key, groups), repeat_heads(value, groups)
    length, missing = query.shape[2], blocks.shape[-1] - query.shape[2]
    query, key, value = (F.pad(each.to(dtype), (0, 0, 0, missing)) for each in (query, key, value))
    with torch.autocast(kind, enabled=False):
        out: Tensor = _kernel(kind)(query, key, value, block_mask=blocks, scale=scaling, enable_gqa=shared)
    return out[:, :, :length]


@cache
def _kernel(kind: str) -> Any:
    """Return FlexAttention, compiled; on a CPU, if nothing is trained with it, the plain formula."""
    return flex_attention if kind == "cpu" else torch.compile(flex_attention)


def register() -> None:
    """Make the implementation known to transformers under :data:`TREE_ATTENTION`."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(TREE_ATTENTION, attend)
    AttentionMaskInterface.register(TREE_ATTENTION, sdpa_mask)


def why_no_tree_attention(heads: int, kv_heads: int, dim: int, dtype: torch.dtype, device: torch.device) -> str:
    """Return the reason why FlexAttention can't train here; empty if there is none.

    It is tried, output and gradients, against attention with a dense mask on two small batches of trees.
    """
    if device.type == "cpu":
        return "PyTorch's FlexAttention has no gradient on a CPU"
    try:
        worst = max(largest_error(shape, heads, kv_heads, dim, dtype, device) for shape in _TRIED_SHAPES)
    except Exception as error:  # noqa: BLE001 - of a compiler and what it calls, of many types
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
    tolerance = 1e-2 if dtype == torch.float32 else 5e-2  # a wrong mask is off by about 1
    return "" if worst < tolerance else f"its results are off by {worst:.2g}"


def largest_error(
    shape: tuple[int, int], heads: int, kv_heads: int, dim: int, dtype: torch.dtype, device: torch.device
) -> float:
    """Return how far output and gradients on random trees are from those with a dense mask, relative to their size."""
    batch, length = shape
    rng = torch.Generator().manual_seed(0)
    end = random_trees(batch, length, rng)
    mask = tree_mask(end).to(device)
    sizes = [(batch, n, length, dim) for n in (heads, kv_heads, kv_heads, heads)]
    *inputs, slope = [torch.randn(size, generator=rng).to(device, dtype) for size in sizes]
    results = []
    for way in ("blocks", "dense"):
        q, k, v = (part.detach().clone().requires_grad_() for part in inputs)
        if way == "blocks":
            out = tree_attention(q, k, v, tree_blocks(end, device))
        else:
            groups = heads // kv_heads
            out = F.scaled_dot_product_attention(q, repeat_heads(k, groups), repeat_heads(v, groups), attn_mask=mask)
        results.append([out.detach(), *torch.autograd.grad((out * slope).sum(), (q, k, v))])
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(*results, strict=True))


def random_trees(batch: int, length: int, rng: torch.Generator) -> Tensor:
    """Return ``subtree_end`` (batch, length) of random trees in depth-first order."""
    ends = torch.empty(batch, length, dtype=torch.long)
    for tree in ends:
        path: list[int] = []
        for node, cut in enumerate(torch.randint(0, 8, (length,), generator=rng).tolist()):
            # seven of eight nodes continue the branch; the others leave half of it
            left = path[len(path) // 2 :] if cut == 0 else []
            tree[torch.tensor(left, dtype=torch.long)] = node
            path = [*path[: len(path) - len(left)], node]
        tree[torch.tensor(path, dtype=torch.long)] = length
    return ends
