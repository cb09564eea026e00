"""Keys and values of all prompt tokens read so far: shared beginnings are computed once, across calls as well.

A prompt is a path of slots in a tree of tokens; a new one takes over the slots of its longest known beginning, which in
sorted order it shares with a neighbour.
"""

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor

from agents.models.local.decoding.machine import in_parts
from agents.models.local.decoding.sampler import TokenIds
from agents.models.local.forward import llama_forward, path_attention
from agents.models.local.forward.llama_forward import LlamaWeights
from agents.models.local.forward.path_attention import QUERIES, Blocks

Slots = NDArray[np.int64]
_KEPT_BYTES = 2**28  # a tree that is larger is forgotten before the next call
_PASS_TOKENS = 2048  # computed at a time


class _Segment(NamedTuple):
    """The new part of a prompt: everything from ``known`` on; ``path`` are the slots of the whole prompt."""

    ids: TokenIds
    path: Slots
    known: int


class KeptPrompts:
    """The tree of prompts, and its tokens' keys and values by slot: ``(K, slots, D)`` for every layer."""

    def __init__(self, weights: LlamaWeights) -> None:
        self.computed = 0
        self._sorted: list[TokenIds] = []
        self._paths: dict[TokenIds, Slots] = {}
        self._used = 0
        nothing = weights.embedding.new_empty(weights.kv_heads, 0, weights.head_dim)
        self._layers = [(nothing, nothing) for _ in weights.layers]

    def full(self) -> bool:
        """Report whether it holds more than is kept between calls."""
        return sum(keys.nbytes + values.nbytes for keys, values in self._layers) > _KEPT_BYTES

    def read(self, weights: LlamaWeights, prompts: Sequence[TokenIds], tail: int = 1) -> tuple[list[Slots], Tensor]:
        """Return the slots of distinct prompts, and hidden states ``(prompts, tail, hidden)`` of their last tokens."""
        segments = {prompt: self._place(prompt, tail) for prompt in sorted(prompts)}
        have = self._layers[0][0].shape[1]
        if self._used > have:
            wider = (0, 0, 0, max(self._used - have, have // 2))
            for index, (keys, values) in enumerate(self._layers):  # a layer at a time, for the sake of memory
                self._layers[index] = F.pad(keys, wider), F.pad(values, wider)
        placed = [*segments.values()]
        passes = in_parts([len(each.path) - each.known for each in placed], _PASS_TOKENS)
        hidden = torch.cat([self._compute(weights, placed[part.start : part.stop], tail) for part in passes])
        hidden = hidden.view(len(prompts), tail, -1)
        order = {prompt: row for row, prompt in enumerate(segments)}
        rows = torch.tensor([order[prompt] for prompt in prompts])
        return [segments[prompt].path for prompt in prompts], hidden.index_select(0, rows)

    def take(self, slots: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return keys and values of some slots ``(n,)``, ``(K, n, D)`` each."""
        return [(keys.index_select(1, slots), values.index_select(1, slots)) for keys, values in self._layers]

    def _place(self, prompt: TokenIds, tail: int) -> _Segment:
        """Find or make the slots of a prompt. Its last ``tail`` tokens are always computed, for their hidden states."""
        place = bisect_left(self._sorted, prompt)
        known, path = 0, np.empty(0, np.int64)
        for other in self._sorted[max(0, place - 1) : place + 1]:
            shared = min(common_prefix([other, prompt]), len(prompt) - tail)
            if shared > known:
                known, path = shared, self._paths[other]
        new = np.arange(self._used, self._used + len(prompt) - known)
        self._used += len(new)
        path = np.concatenate([path[:known], new])
        if prompt not in self._paths:
            insort(self._sorted, prompt)
        self._paths[prompt] = path
        return _Segment(prompt, path, known)

    def _compute(self, weights: LlamaWeights, segments: Sequence[_Segment], tail: int) -> Tensor:
        """Compute keys and values of the segments' new tokens in one pass; return the last ones' hidden states."""
        ids = torch.tensor([token for each in segments for token in each.ids[each.known :]])
        positions = torch.cat([torch.arange(each.known, len(each.ids)) for each in segments])
        slots = torch.from_numpy(np.concatenate([each.path[each.known :] for each in segments]))
        blocks = _blocks(segments)

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            keys, values = self._layers[layer]
            keys.index_copy_(1, slots, k.transpose(0, 1))
            values.index_copy_(1, slots, v.transpose(0, 1))
            return path_attention.attend_to(q, keys, values, blocks)

        ends = np.cumsum([len(each.ids) - each.known for each in segments])
        only = torch.from_numpy(ends[:, None] + np.arange(-tail, 0)).flatten()
        self.computed += len(ids)
        return llama_forward.hidden_states(weights, ids, positions, attend, only=only)


def common_prefix(sequences: Sequence[TokenIds]) -> int:
    """Return how many tokens all sequences begin with, by the least and the greatest: the others lie between."""
    a, b = min(sequences), max(sequences)
    low, high = 0, min(len(a), len(b))
    while low < high:  # comparing slices takes a tenth of comparing tokens in Python
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[low:middle] == b[low:middle] else (low, middle - 1)
    return low


def _blocks(segments: Sequence[_Segment]) -> Blocks:
    """Return blocks of queries of one segment each, which meet the beginning of its path."""
    begin = np.cumsum([0, *(len(each.ids) - each.known for each in segments)])
    parts = [
        (segment, start, min(start + QUERIES, len(segment.ids)), int(first))
        for segment, first in zip(segments, begin, strict=False)
        for start in range(segment.known, len(segment.ids), QUERIES)
    ]
    parts.sort(key=lambda part: part[2])
    count, size = int(begin[-1]), max(stop - start for _, start, stop, _ in parts)
    lengths = tuple(stop for _, _, stop, _ in parts)
    longest = lengths[-1]
    queries = np.full((len(parts), size), count)
    keys = np.zeros((len(parts), longest), np.int64)
    sees = np.zeros((len(parts), size), np.int64)  # how many keys each query sees; those beyond are later ones
    place = np.empty(count, np.int64)
    for row, (segment, start, stop, first) in enumerate(parts):
        own = np.arange(stop - start)
        queries[row, : len(own)] = first + start - segment.known + own
        place[queries[row, : len(own)]] = row * size + own
        keys[row, :stop] = segment.path[:stop]
        sees[row] = start + 1 + np.minimum(np.arange(size), len(own) - 1)
    hidden = torch.arange(longest) >= torch.from_numpy(sees)[..., None]
    tables = (torch.from_numpy(queries), torch.from_numpy(place), torch.from_numpy(keys))
    return Blocks(*tables, path_attention.hidden_where(hidden), lengths)
