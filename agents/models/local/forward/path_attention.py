"""Attention within token trees, block by block: a block of queries meets the keys of its ancestors and no others.

A dense mask computes seven times the needed pairs for a tree of 2,300 tokens with paths of 350. In depth-first order
all ancestors of a block's queries are ancestors of its first one, or stand in the block itself, so their keys are
gathered. Attention is computed again in the backward pass, so the memory is that of queries, keys and values.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor, nn

from agents.models.local.forward.llama_forward import hidden_states, read_weights

QUERIES = 64  # of a block: larger ones compute more pairs that are masked, smaller ones make thin products
_SCORES = 2**19  # scores that exist at a time, at least one block's: they stay in the caches of a processor


class Blocks(NamedTuple):
    """The keys that every block of ``Q`` queries meets; ``N`` blocks, their keys padded to the longest list ``S``.

    Blocks with lists of like length stand side by side: those that are computed together pad no more than they need.
    """

    queries: Tensor  # (N, Q) token of each query; ``T`` if there is none
    place: Tensor  # (T,) where each token stands in the flattened queries
    keys: Tensor  # (N, S) token of each key; any where ``bias`` hides it
    bias: Tensor  # (N, Q, S) 0 if the query sees the key, else the lowest number; float32
    lengths: tuple[int, ...]  # of the blocks' lists of keys, ascending

    def parts(self, heads: int) -> list["Part"]:
        """Return the blocks that are computed at a time."""
        parts, start, (count, size) = [], 0, self.queries.shape
        # few shapes: each one that a product meets takes memory for good
        widths = [min(-(-length // QUERIES) * QUERIES, self.keys.shape[1]) for length in self.lengths]
        while start < count:
            stop = start + 1
            while stop < count and (stop + 1 - start) * size * widths[stop] * heads <= _SCORES:
                stop += 1
            part, width = slice(start, stop), widths[stop - 1]
            parts.append(Part(self.queries[part], self.keys[part, :width], self.bias[part, :, :width]))
            start = stop
        return parts


class Part(NamedTuple):
    """Some of the blocks, ``n`` of them, as wide as the longest of their lists of keys needs."""

    queries: Tensor  # (n, Q)
    keys: Tensor  # (n, S')
    bias: Tensor  # (n, Q, S')


def tree_blocks(subtree_end: NDArray[np.int64], size: int = QUERIES, known: int = 0) -> Blocks:
    """Return blocks of trees in depth-first order: tokens ``j .. subtree_end[j] - 1`` see token ``j``, ``(T,)``.

    The first ``known`` tokens are keys alone: queries are counted from there on.
    """
    count = len(subtree_end)
    size = min(size, count - known)
    found = []
    for start in range(known, count, size):
        before = np.flatnonzero(subtree_end[:start] > start)
        found.append((start, np.concatenate([before, np.arange(start, min(start + size, count))])))
    found.sort(key=lambda block: len(block[1]))
    lengths = tuple(len(tokens) for _, tokens in found)
    keys = np.zeros((len(found), -(-lengths[-1] // size) * size), np.int64)
    seen_by = np.zeros(keys.shape, np.int64)  # subtree_end of each key; 0 hides what fills up
    place = np.empty(count - known, np.int64)
    query = np.array([start for start, _ in found])[:, None] + np.arange(size)
    for row, (start, tokens) in enumerate(found):
        keys[row, : len(tokens)], seen_by[row, : len(tokens)] = tokens, subtree_end[tokens]
        own = np.arange(min(size, count - start))
        place[start - known + own] = row * size + own
    visible = (keys[:, None] <= query[..., None]) & (query[..., None] < seen_by[:, None])
    return Blocks(
        torch.from_numpy(np.minimum(query, count) - known),
        torch.from_numpy(place),
        torch.from_numpy(keys),
        hidden_where(torch.from_numpy(~visible)),
        lengths,
    )


def hidden_where(hidden: Tensor) -> Tensor:
    """Return zeros, and the lowest number if ``hidden``: unlike infinity it leaves a row that sees nothing a number."""
    return torch.zeros(hidden.shape).masked_fill_(hidden, torch.finfo(torch.float32).min)


def attend(q: Tensor, k: Tensor, v: Tensor, blocks: Blocks) -> Tensor:
    """Return ``(T, H * D)`` of queries ``(T, H, D)`` on keys and values ``(T', K, D)``, differentiable in all three; in
    the type of the values, as rotated queries and keys may have another."""
    out: Tensor = _PathAttention.apply(q.to(v.dtype), k.to(v.dtype), v, blocks)  # type: ignore[no-untyped-call]
    return out


def attend_to(q: Tensor, keys: Tensor, values: Tensor, blocks: Blocks) -> Tensor:
    """Attend without a gradient to keys and values that are kept heads first: ``(K, T', D)``."""
    queries = _heads_first(q * q.shape[2] ** -0.5, keys.shape[0])
    parts = []
    for part in blocks.parts(q.shape[1]):
        share, _, _ = _shares(queries, keys, part)
        parts.append(_unfold(share.to(values.dtype) @ _gather(values, part.keys), queries, part))
    return _in_order(parts, blocks)


class TreeAttention:
    """Attention of tokens in trees on their ancestors: an :data:`~agents.models.local.forward.llama_forward.Attend`.
    ``trunk`` holds each layer's keys and values ``(n, K, D)`` in turn of n tokens that all trees grow from."""

    def __init__(self, subtree_end: NDArray[np.int64], trunk: Sequence[Tensor] = ()) -> None:
        known = len(trunk[0]) if trunk else 0
        whole = np.concatenate([np.full(known, known + len(subtree_end)), subtree_end + known])
        self.blocks, self.trunk = tree_blocks(whole, known=known), trunk

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if self.trunk:
            keys, values = self.trunk[2 * layer : 2 * layer + 2]
            k, v = torch.cat([keys.to(k.dtype), k]), torch.cat([values.to(v.dtype), v])
        return attend(q, k, v, self.blocks)


class _PathAttention(torch.autograd.Function):
    """Inside, heads stand in front and queries that share a key head side by side: ``(K, tokens, G, D)``."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, blocks: Blocks) -> Tensor:
        out = attend_to(q, _keys_first(k), _keys_first(v), blocks)
        ctx.save_for_backward(q, k, v, out)
        ctx.blocks = blocks
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (q, k, v, out), blocks = ctx.saved_tensors, ctx.blocks
        scale, kv_heads = q.shape[2] ** -0.5, k.shape[1]
        queries, keys, values = _heads_first(q * scale, kv_heads), _keys_first(k), _keys_first(v)
        slope = grads[0].to(q.dtype).view(q.shape)
        # many blocks add to one key: in single precision at least
        wide = torch.promote_types(q.dtype, torch.float32)
        # a query's sum of share * moved, which is that of its output * slope: made of rows and not of whole matrices
        sums = _heads_first((out.view(q.shape).to(wide) * slope).sum(-1, keepdim=True), kv_heads)
        slope = _heads_first(slope, kv_heads)
        grad_q = []
        grad_k = torch.zeros(keys.shape, dtype=wide, device=k.device)
        grad_v = torch.zeros_like(grad_k)
        for part in blocks.parts(q.shape[1]):
            share, mine, seen = _shares(queries, keys, part)
            index = part.keys.reshape(-1)
            above = _gather_queries(slope, part.queries)
            low = share.to(v.dtype)
            grad_v.index_add_(1, index, (low.transpose(1, 2) @ above).view(len(keys), -1, v.shape[2]).to(wide))
            moved = (above @ _gather(values, part.keys).transpose(1, 2)).to(wide)
            # d softmax: share * (moved - sum of share * moved)
            moved = moved.sub_(_gather_queries(sums, part.queries)).mul_(share).to(q.dtype)
            grad_q.append(_unfold(moved @ seen, queries, part))
            grad_k.index_add_(1, index, (moved.transpose(1, 2) @ mine).view(len(keys), -1, k.shape[2]).to(wide))
        grad_queries = _in_order(grad_q, blocks).view(q.shape).mul_(scale)
        return grad_queries, grad_k.transpose(0, 1).to(k.dtype), grad_v.transpose(0, 1).to(v.dtype), None


def _heads_first(q: Tensor, kv_heads: int) -> Tensor:
    """Turn ``(T, H, D)`` to ``(K, T + 1, G, D)``, with a token of zeros for places without a query."""
    table = q.view(q.shape[0], kv_heads, -1, q.shape[2]).transpose(0, 1)
    return F.pad(table, (0, 0, 0, 0, 0, 1))


def _keys_first(k: Tensor) -> Tensor:
    """Turn ``(T, K, D)`` to ``(K, T, D)``, contiguous as half-precision products copy anything else."""
    return k.transpose(0, 1).contiguous()


def _gather(keys: Tensor, index: Tensor) -> Tensor:
    """Return keys ``(K, T, D)`` of some blocks ``(n, S)``: ``(K * n, S, D)``."""
    return keys.index_select(1, index.reshape(-1)).view(-1, index.shape[1], keys.shape[2])


def _gather_queries(queries: Tensor, index: Tensor) -> Tensor:
    """Return queries ``(K, T + 1, G, D)`` of some blocks ``(n, Q)``: ``(K * n, Q * G, D)``."""
    return queries.index_select(1, index.reshape(-1)).view(-1, index.shape[1] * queries.shape[2], queries.shape[3])


def _shares(queries: Tensor, keys: Tensor, part: Part) -> tuple[Tensor, Tensor, Tensor]:
    """Return some blocks' attention ``(K * n, Q * G, S')``, in float32 at least, their scaled queries, and keys."""
    kv_heads, _, groups, _ = queries.shape
    count, size = part.queries.shape
    mine, seen = _gather_queries(queries, part.queries), _gather(keys, part.keys)
    scores = (mine @ seen.transpose(1, 2)).to(torch.promote_types(mine.dtype, torch.float32))
    scores.view(kv_heads, count, size, groups, -1).add_(part.bias[:, :, None])
    return scores.softmax(-1), mine, seen


def _unfold(out: Tensor, queries: Tensor, part: Part) -> Tensor:
    """Turn ``(K * n, Q * G, D)`` to ``(n * Q, K, G, D)``."""
    kv_heads, _, groups, dim = queries.shape
    count, size = part.queries.shape
    return out.view(kv_heads, count * size, groups, dim).transpose(0, 1)


def _in_order(parts: list[Tensor], blocks: Blocks) -> Tensor:
    """Return the parts' results by token, ``(T, H * D)``."""
    return torch.cat(parts).flatten(1).index_select(0, blocks.place)


class Trunk:
    """A common beginning ``ids``, at positions from 0 on, as the micro-batches of one pass attend to it. Each of them
    adds gradients to copies of the trunk's keys and values; :meth:`backward` sends the sums through the trunk itself,
    so that the trunk and one micro-batch are held at a time."""

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = ids
        self._made: dict[nn.Module, tuple[list[Tensor], list[Tensor]]] = {}

    def layers(self, model: nn.Module) -> Sequence[Tensor]:
        """Return each layer's keys and values ``(n, K, D)`` in turn, as the model was when they were first asked."""
        if model not in self._made:
            made: list[Tensor] = []
            count, filling = len(self.ids), -len(self.ids) % QUERIES  # whole blocks, as in micro-batches
            tree = TreeAttention(np.full(count + filling, count + filling))

            def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
                made.extend((k[:count], v[:count]))
                return tree(layer, q, k, v)

            ids, places = F.pad(torch.tensor(self.ids), (0, filling)), torch.arange(count + filling)
            hidden_states(read_weights(model), ids, places, attend, only=places[:0])
            # many micro-batches add to one gradient: in single precision at least
            wide = [each.detach().to(torch.promote_types(each.dtype, torch.float32)) for each in made]
            copies = [copy.requires_grad_(each.requires_grad) for copy, each in zip(wide, made, strict=True)]
            self._made[model] = made, copies
        return self._made[model][1]

    def backward(self) -> None:
        """Send what has reached the copies through the trunk, and forget all that was computed."""
        for made, copies in self._made.values():
            pairs = zip(made, copies, strict=True)
            reached = [(each, copy.grad.to(each.dtype)) for each, copy in pairs if copy.grad is not None]
            if reached:
                torch.autograd.backward([each for each, _ in reached], [slope for _, slope in reached])
        self._made.clear()
