"""Next-token logits of Llama-type models, by the lean forward pass of :mod:`agents.models.local.forward`.

The tokens that all prompts begin with (the instructions) are computed once, and kept across calls until the weights
change; identical prompts are computed once; the caches are written in place. On a CPU, for models from some million
parameters on, everything that prompts share is kept: :mod:`agents.models.local.decoding.kept_prompts`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from agents.models.local.decoding.kept_prompts import KeptPrompts, Slots, common_prefix
from agents.models.local.decoding.machine import Compute, Recorder, in_parts
from agents.models.local.decoding.sampler import COMPACT_AT, TokenIds
from agents.models.local.forward import llama_forward
from agents.models.local.forward.llama_forward import LlamaWeights, Packing, repeat_heads

# columns by which a cache grows; on a CPU reserved columns push used ones out of its caches, and copying is cheaper
_BLOCK = {"cpu": 32}
_BLOCK_ELSEWHERE = 64
_PREFILL_TOKENS = {"cpu": 1024}  # prompt tokens computed at a time; small enough for a CPU's caches
_PREFILL_TOKENS_ELSEWHERE = 32768
_RECORD_AFTER = 4  # steps of a batch from which a GPU's are recorded: an action's name is over before
_KEEP_FROM = 5_000_000  # parameters from which computing a token costs more than finding it again

Caches = list[tuple[Tensor, Tensor]]  # keys and values of every layer


class _Prefix(NamedTuple):
    """Tokens that all rows begin with, their keys and values ``(K, P, D)``, and the weights that made them."""

    ids: TokenIds
    caches: Caches
    made_by: tuple[object, ...]


class LeanDecoder:
    """A :class:`~agents.models.local.decoding.sampler.Decoder` for models that the lean forward pass covers;
    ``prefill_tokens`` counts the prompt tokens computed so far."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.prefill_tokens = 0
        self._prefix: _Prefix | None = None
        self._kept: tuple[tuple[object, ...], KeptPrompts] | None = None  # with the fingerprint of its weights
        device = next(model.parameters()).device
        self.recorder = Recorder(device) if device.type == "cuda" else None
        self._keeps = device.type == "cpu" and sum(weight.numel() for weight in model.parameters()) >= _KEEP_FROM

    def start(self, prompts: Sequence[TokenIds], rows: Sequence[int]) -> tuple["LeanBatch", Tensor]:
        batch, hidden = self.begin(prompts, rows, 1)
        return batch, llama_forward.logits(batch.weights, hidden)

    def begin(self, prompts: Sequence[TokenIds], rows: Sequence[int], tail: int) -> tuple["LeanBatch", Tensor]:
        """Begin as :meth:`start` does, with the hidden states of each row's last ``tail`` tokens:
        ``(rows * tail, hidden)``."""
        weights = llama_forward.read_weights(self.model)
        shared = min(common_prefix(prompts), min(map(len, prompts)) - tail)
        if self._keeps:
            made_by = fingerprint(self.model)
            if self._kept is None or self._kept[0] != made_by or self._kept[1].full():
                self._kept = (made_by, KeptPrompts(weights))
            kept = self._kept[1]
            before = kept.computed
            paths, hidden = kept.read(weights, prompts, tail)
            self.prefill_tokens += kept.computed - before
            prefix = kept.take(torch.from_numpy(paths[0][:shared]))
            batch = LeanBatch(weights, prefix, [prompts[row][shared:] for row in rows])
            batch.fill(kept, [paths[row][shared:] for row in rows])
            hidden = hidden.index_select(0, torch.tensor(rows))
        else:
            prefix = self._read_prefix(weights, prompts[0][:shared])
            suffixes = [prompt[shared:] for prompt in prompts]
            batch = LeanBatch(weights, prefix, suffixes, self.recorder)  # a row per prompt first
            hidden = batch.read(suffixes, tail)
            self.prefill_tokens += sum(map(len, suffixes))
            if list(rows) != list(range(len(prompts))):
                index = torch.tensor(rows, device=hidden.device)
                batch.keep(index)
                hidden = hidden.index_select(0, index)
        return batch, hidden.flatten(0, 1)

    def forget(self) -> None:
        self._prefix = self._kept = None
        if self.recorder is not None:
            self.recorder.forget()

    def _read_prefix(self, weights: LlamaWeights, ids: TokenIds) -> Caches:
        """Return keys and values of the shared tokens: the last call's as far as they agree, the rest computed."""
        nothing = weights.embedding.new_empty(weights.kv_heads, 0, weights.head_dim)
        caches: Caches = [(nothing, nothing) for _ in weights.layers]
        if not ids:
            return caches
        made_by, known = fingerprint(self.model), 0
        if self._prefix is not None and self._prefix.made_by == made_by:
            known = common_prefix([self._prefix.ids, ids])
            caches = [(keys[:, :known], values[:, :known]) for keys, values in self._prefix.caches]
        if known < len(ids):
            batch = LeanBatch(weights, caches, [ids[known:]])
            batch.read([ids[known:]], 1)
            self.prefill_tokens += len(ids) - known
            new = [(keys[:, 0, : batch.filled], values[:, 0, : batch.filled]) for keys, values in batch.caches]
            caches = [
                (torch.cat([keys, more_keys], dim=1), torch.cat([values, more_values], dim=1))
                for (keys, values), (more_keys, more_values) in zip(caches, new, strict=True)
            ]
            self._prefix = _Prefix(ids, caches, made_by)
        return caches


class LeanBatch:
    """Rows that are being continued; a :class:`~agents.models.local.decoding.sampler.Batch`.

    A row's last prompt token and all that follows stand in the same columns for every row, so appending is one copy.
    Shorter prompts leave empty columns in front, which are masked.

    ``prefix`` are keys and values ``(K, P, D)`` of the ``P`` tokens that all rows begin with, ``suffixes`` the rest of
    each row's prompt, none empty; ``caches`` are ``(K, rows, columns, D)`` per layer, of which ``filled`` columns are
    in use; ``bias (rows, columns)`` is minus infinity at empty ones. If products take ``whole`` caches, columns that
    aren't filled yet are hidden, too. With a ``recorder`` one batch is continued at a time, in one thread.

    A batch is continued either by :meth:`step` or by :meth:`append`, after which rows may be of different lengths.
    """

    def __init__(
        self, weights: LlamaWeights, prefix: Caches, suffixes: Sequence[TokenIds], recorder: Recorder | None = None
    ) -> None:
        device = weights.embedding.device
        self.weights, self.prefix = weights, prefix
        self.shared = prefix[0][0].shape[1]
        self.block = _BLOCK.get(device.type, _BLOCK_ELSEWHERE)
        self._recorder, self._recorded = recorder, cast(Compute | None, None)
        self._made = self._alike = 0  # steps, and of those the last ones of one shape
        # a CPU's products in half precision copy tables of which a part is taken, and a recording's have one size:
        # there the empty columns are hidden
        self.whole = recorder is not None or (device.type == "cpu" and weights.embedding.dtype.itemsize < 4)
        sizes = [len(suffix) for suffix in suffixes]
        self.filled = max(sizes)
        self.column = torch.tensor([self.filled], device=device)
        lengths = torch.tensor(sizes, device=device)
        self.positions = lengths + self.shared
        self.blanks = self.filled - lengths  # (rows,) empty columns in front
        self.caches = [(self._empty(len(suffixes)), self._empty(len(suffixes))) for _ in weights.layers]
        self.bias: Tensor | None = None
        if self.whole or min(sizes) < self.filled:
            columns = torch.arange(self.filled + self.block, device=device)
            self.bias = torch.zeros(len(suffixes), columns.numel(), device=device, dtype=weights.embedding.dtype)
            self.bias.masked_fill_(columns < self.blanks[:, None], float("-inf"))
            if self.whole:
                self.bias[:, self.filled :] = float("-inf")

    def read(self, suffixes: Sequence[TokenIds], tail: int) -> Tensor:
        """Compute the prompts' own tokens; return the hidden states ``(rows, tail, hidden)`` of their last ones."""
        limit = _PREFILL_TOKENS.get(self.weights.embedding.device.type, _PREFILL_TOKENS_ELSEWHERE)
        chunks = in_parts([len(suffix) for suffix in suffixes], limit)
        hidden = torch.cat([self._read_chunk(chunk, suffixes, tail) for chunk in chunks])
        return hidden.view(len(suffixes), tail, -1)

    def fill(self, kept: KeptPrompts, paths: Sequence[Slots]) -> None:
        """Copy the rows' own prompt tokens in from the kept ones, by their slots."""
        table = np.zeros((len(paths), self.filled), np.int64)
        for row, path in zip(table, paths, strict=True):
            row[self.filled - len(path) :] = path  # columns in front of it are hidden
        shape = (self.weights.kv_heads, len(paths), self.filled, self.weights.head_dim)
        for mine, theirs in zip(self.caches, kept.take(torch.from_numpy(table.reshape(-1))), strict=True):
            for cache, taken in zip(mine, theirs, strict=True):
                cache[:, :, : self.filled] = taken.view(shape)

    def step(self, tokens: Tensor) -> Tensor:
        if self._make_room(self.filled + 1):
            if self.bias is not None:
                self.bias = F.pad(self.bias, (0, self.block), value=float("-inf") if self.whole else 0.0)
            self._recorded, self._alike = None, 0
        if self.whole and self.bias is not None:
            self.bias[:, self.filled] = 0.0
        logits = self._way(tokens)(tokens)
        self.filled += 1
        self._made += 1
        self._alike += 1
        # in place: a recording reads them if they are
        self.positions += 1
        if self._recorder is not None:
            self.column += 1
        return logits

    def append(self, runs: Sequence[TokenIds], dropped: Sequence[int]) -> Tensor:
        """Drop some of every row's last tokens and append others, at least one; return the final hidden states
        ``(tokens, hidden)`` of these."""
        device = self.positions.device
        packing = Packing([len(run) for run in runs], device)
        first = self.positions - torch.tensor(dropped, device=device)
        begin = first - self.shared + self.blanks  # (rows,) the first column that is free
        filled, end = self.filled, int((begin + packing.lengths).max())
        self._make_room(end)
        seen = self.caches[0][0].shape[2] if self.whole else end
        columns = torch.arange(seen, device=device)
        own = (begin[:, None] + torch.arange(packing.longest, device=device))[..., None]
        hidden = (columns < self.blanks[:, None, None]) | (columns > own)  # (rows, longest, seen)
        bias = torch.zeros(hidden.shape, device=device, dtype=self.caches[0][0].dtype)
        bias = bias.masked_fill_(hidden, float("-inf")).repeat(1, self.weights.heads // self.weights.kv_heads, 1)
        columns, positions = (each[packing.row] + packing.column for each in (begin, first))

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            for cache, new in zip(self.caches[layer], (k, v), strict=True):
                cache[:, :, filled:end] = 0
                cache[:, packing.row, columns] = new.transpose(0, 1)
            queries = packing.pad(q * q.shape[2] ** -0.5)  # (rows, H, longest, D)
            by_key = queries.reshape(len(runs), k.shape[1], -1, q.shape[2]).transpose(0, 1)
            out = self._attend(layer, by_key, seen, bias).transpose(0, 1)
            return packing.unpad(out.reshape(queries.shape))

        ids = torch.tensor([token for run in runs for token in run], device=device)
        self.positions, self.filled = first + packing.lengths, max(filled, end)
        return llama_forward.hidden_states(self.weights, ids, positions, attend)

    def _make_room(self, columns: int) -> bool:
        """Report whether the caches had to grow to so many columns."""
        more = columns - self.caches[0][0].shape[2]
        if more > 0:
            wider = (0, 0, 0, max(more, self.block))
            for index, (keys, values) in enumerate(self.caches):  # a layer at a time, for the sake of memory
                self.caches[index] = F.pad(keys, wider), F.pad(values, wider)
        return more > 0

    def keep(self, rows: Tensor) -> None:
        self._recorded, self._alike = None, 0
        for index, (keys, values) in enumerate(self.caches):
            kept = []
            for cache in (keys, values):
                fresh = cache.new_empty(cache.shape[0], len(rows), cache.shape[2], cache.shape[3])
                # only filled columns are copied
                fresh[:, :, : self.filled] = cache[:, :, : self.filled].index_select(1, rows)
                if self.whole:
                    fresh[:, :, self.filled :] = 0
                kept.append(fresh)
            self.caches[index] = (kept[0], kept[1])
        self.positions, self.blanks = self.positions.index_select(0, rows), self.blanks.index_select(0, rows)
        if self.bias is not None:
            self.bias = self.bias.index_select(0, rows)

    @property
    def compact_at(self) -> float:
        # rows that have ended cost little if steps are recorded, and another recording costs a step
        return COMPACT_AT if self._recorded is None else 0.5

    def _way(self, tokens: Tensor) -> Compute:
        """Return how to make this step: recorded, if that pays and there is memory for it."""
        if self._recorder is None or self._made < _RECORD_AFTER or not self._alike:
            return self._logits
        if self._recorded is None or self._recorded is not self._recorder.last:
            self._recorded = self._recorder.record(self._logits, tokens)
        if self._recorded is None:
            self._recorder = None  # for the rest of this batch
            return self._logits
        return self._recorded

    def _logits(self, tokens: Tensor) -> Tensor:
        hidden = llama_forward.hidden_states(self.weights, tokens, self.positions, self._attend_to_past)
        return llama_forward.logits(self.weights, hidden)

    def _empty(self, rows: int) -> Tensor:
        """Return a layer's cache with room to grow. Empty columns are zeros: masked junk still counts if NaN."""
        weights = self.weights
        cache = weights.embedding.new_empty(weights.kv_heads, rows, self.filled + self.block, weights.head_dim)
        cache[:, :, : cache.shape[2] if self.whole else self.filled] = 0
        return cache

    def _read_chunk(self, chunk: range, suffixes: Sequence[TokenIds], tail: int) -> Tensor:
        device = self.weights.embedding.device
        mine = [suffixes[index] for index in chunk]
        packing = Packing([len(suffix) for suffix in mine], device, self.shared)
        rows = packing.row + chunk.start
        columns = packing.column + self.filled - packing.lengths[packing.row]
        mask: Tensor | None = None  # causal alone, as padding is on the right
        if self.shared:
            seen = torch.ones(packing.longest, packing.longest + self.shared, dtype=torch.bool, device=device)
            mask = seen.tril(self.shared)

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            tables = []
            for cache, before, new in zip(self.caches[layer], self.prefix[layer], (k, v), strict=True):
                cache[:, rows, columns] = new.transpose(0, 1)
                table = packing.pad(new)
                if self.shared:
                    table = torch.cat([before.expand(len(mine), -1, -1, -1), table], dim=2)
                tables.append(repeat_heads(table, q.shape[1] // k.shape[1]))
            keys, values = tables
            causal = mask is None
            out = F.scaled_dot_product_attention(packing.pad(q), keys, values, attn_mask=mask, is_causal=causal)
            return packing.unpad(out)

        tokens = torch.tensor([token for suffix in mine for token in suffix], device=device)
        only = (packing.last[:, None] + torch.arange(1 - tail, 1, device=device)).flatten()
        return llama_forward.hidden_states(self.weights, tokens, packing.positions, attend, only=only)

    def _attend_to_past(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attend with one new token per row."""
        keys, values = self.caches[layer]
        if self._recorder is None:
            keys[:, :, self.filled] = k.transpose(0, 1)
            values[:, :, self.filled] = v.transpose(0, 1)
        else:
            keys.index_copy_(2, self.column, k.transpose(0, 1)[:, :, None])
            values.index_copy_(2, self.column, v.transpose(0, 1)[:, :, None])
        kv_heads, n, columns, dim = keys.shape
        seen = columns if self.whole else self.filled + 1
        q = (q * dim**-0.5).view(n, kv_heads, -1, dim).transpose(0, 1)  # (K, N, G, D)
        out = self._attend(layer, q, seen, None if self.bias is None else self.bias[:, None, :seen])
        return out.transpose(0, 1).reshape(n, -1)

    def _attend(self, layer: int, q: Tensor, seen: int, bias: Tensor | None) -> Tensor:
        """Attend with scaled queries ``(K, N, Q, D)`` to the shared tokens (one product for all rows) and to each row's
        first columns; ``bias`` is ``(N, Q or 1, seen)``."""
        (keys, values), shared = self.caches[layer], self.shared
        kv_heads, n, count, dim = q.shape
        own = q @ keys[:, :, :seen].transpose(2, 3)  # (K, N, Q, seen)
        if bias is not None:
            own = own + bias
        before_keys, before_values = self.prefix[layer]
        if shared:
            before = q.reshape(kv_heads, n * count, dim) @ before_keys.transpose(1, 2)
            own = torch.cat([before.view(kv_heads, n, count, shared), own], dim=-1)
        share = own.softmax(-1, dtype=torch.float32).to(q.dtype)
        out = share[..., shared:] @ values[:, :, :seen]  # (K, N, Q, D)
        if shared:
            # contiguous: the slice's rows stand too far apart for one matrix product over all of them
            before = share[..., :shared].reshape(kv_heads, n * count, shared) @ before_values
            out = out + before.view(kv_heads, n, count, dim)
        return out


def fingerprint(model: nn.Module) -> tuple[object, ...]:
    """Return a value that changes whenever the weights do: every parameter's storage and version, and some values,
    which catch writes through ``.data`` (unless they miss every sampled one: call :meth:`LeanDecoder.forget`)."""
    parameters = list(model.parameters())
    samples = [p.detach().reshape(-1)[:: max(1, p.numel() // 64)].float().sum() for p in parameters]
    versions = tuple((p.data_ptr(), 0 if p.is_inference() else p._version) for p in parameters)
    # which adapters are active changes the weights too, without touching a parameter
    adapters = tuple(
        (tuple(module.active_adapters), bool(module.disable_adapters), bool(module.merged))
        for module in cast(Any, model).modules()
        if hasattr(module, "lora_A")
    )
    return (versions, adapters, tuple(torch.stack(samples).tolist()))
