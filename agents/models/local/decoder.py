"""Next-token logits for a batch of growing sequences: the part of generation that knows about KV caches.

Two implementations of one protocol, :class:`Decoder`:

* :class:`LeanDecoder` runs :mod:`agents.models.local.llama_forward`. The tokens that all prompts begin with (the
  instructions) are computed once, kept once, and kept across calls for as long as the weights don't change; identical
  prompts are computed once; the caches are written in place.
* :class:`GenericDecoder` runs the model's own ``forward`` with left padding, for every other architecture. Identical
  prompts are computed once.

Either way a finished row can be dropped from the caches, so that no time is spent on it.
"""

import inspect
from collections.abc import Sequence
from typing import Any, Protocol, cast

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from agents.models.local import llama_forward
from agents.models.local.llama_forward import Packing, repeat_heads

TokenIds = tuple[int, ...]

# columns by which a cache grows; on a CPU reserved columns push what is read out of its caches, copying is cheaper
_BLOCK = {"cpu": 32}
_BLOCK_ELSEWHERE = 64
_PREFILL_TOKENS = {"cpu": 1024}  # prompt tokens computed at a time; small enough for a CPU's caches
_PREFILL_TOKENS_ELSEWHERE = 32768


class Decoder(Protocol):
    """Logits for a batch of rows, one token after the other."""

    def start(self, prompts: Sequence[TokenIds], rows: Sequence[int]) -> Tensor:
        """Read the prompts.

        Args:
            prompts: distinct, none empty.
            rows: for every row of the batch, the index of its prompt.

        Returns:
            ``(rows, vocabulary)`` logits of every row's first token.
        """
        ...

    def step(self, tokens: Tensor) -> Tensor:
        """Append one token ``(rows,)`` to every row; the logits ``(rows, vocabulary)`` of the next."""
        ...

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows alone, in this order."""
        ...

    def bytes_per_token(self) -> int:
        """Memory of one token of one row in the caches."""
        ...


def make_decoder(model: nn.Module, *, lean: bool = True) -> Decoder:
    """The fastest decoder that covers the model; ``lean=False`` takes the generic one."""
    if lean and llama_forward.why_not(model) is None:
        return LeanDecoder(model)
    return GenericDecoder(model)


def common_prefix(sequences: Sequence[TokenIds]) -> int:
    """How many tokens all sequences begin with. Looks at the least and the greatest: the others lie between."""
    low, high = min(sequences), max(sequences)
    return next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))


class _Prefix:
    """Keys and values ``(K, P, D)`` of every layer for tokens that all rows begin with, and whose weights made them."""

    def __init__(self, ids: TokenIds, caches: list[tuple[Tensor, Tensor]], made_by: tuple[object, ...]) -> None:
        self.ids, self.caches, self.made_by = ids, caches, made_by


class LeanDecoder:
    """See the module's text. Caches are ``(K, rows, columns, D)`` per layer; a row's last prompt token and all that
    follows stand in the same columns for every row, so appending is one copy; shorter prompts leave empty columns in
    front, which are masked.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self._prefix: _Prefix | None = None
        self.prefill_tokens = 0  # prompt tokens computed so far: what sharing saves can be seen here

    def start(self, prompts: Sequence[TokenIds], rows: Sequence[int]) -> Tensor:
        """See :meth:`Decoder.start`."""
        self.weights = weights = llama_forward.read_weights(self.model)
        device = weights.embedding.device
        self._block = _BLOCK.get(device.type, _BLOCK_ELSEWHERE)
        shared = min(common_prefix(prompts), min(map(len, prompts)) - 1)
        self.prefix = self._read_prefix(prompts[0][:shared])
        suffixes = [prompt[shared:] for prompt in prompts]
        lengths = torch.tensor([len(suffix) for suffix in suffixes], device=device)
        self.filled = longest = int(lengths.max())
        # a row per prompt first; expanded to the batch's rows below
        self.caches = [(self._empty(len(prompts), longest), self._empty(len(prompts), longest)) for _ in weights.layers]
        hidden = torch.cat([self._read_suffixes(chunk, suffixes, shared) for chunk in self._chunks(suffixes)])
        self.positions = lengths + shared
        blanks = longest - lengths  # (prompts,) empty columns in front
        self.bias = None
        if int(blanks.max()):
            columns = torch.arange(longest + self._block, device=device)
            self.bias = torch.zeros(len(prompts), columns.numel(), device=device, dtype=weights.embedding.dtype)
            self.bias.masked_fill_(columns < blanks[:, None], float("-inf"))
        index = torch.tensor(rows, device=device)
        if len(rows) != len(prompts) or list(rows) != list(range(len(prompts))):
            self.keep(index)
            hidden = hidden.index_select(0, index)
        return llama_forward.logits(weights, hidden)

    def step(self, tokens: Tensor) -> Tensor:
        """See :meth:`Decoder.step`."""
        if self.filled == self.caches[0][0].shape[2]:
            self._grow()
        hidden = llama_forward.hidden_states(self.weights, tokens, self.positions, self._attend_to_past)
        self.filled += 1
        self.positions = self.positions + 1
        return llama_forward.logits(self.weights, hidden)

    def keep(self, rows: Tensor) -> None:
        """See :meth:`Decoder.keep`."""
        for index, (keys, values) in enumerate(self.caches):
            kept = []
            for cache in (keys, values):
                fresh = cache.new_empty(cache.shape[0], len(rows), cache.shape[2], cache.shape[3])
                # only what is filled is copied
                fresh[:, :, : self.filled] = cache[:, :, : self.filled].index_select(1, rows)
                kept.append(fresh)
            self.caches[index] = (kept[0], kept[1])
        self.positions = self.positions.index_select(0, rows)
        if self.bias is not None:
            self.bias = self.bias.index_select(0, rows)

    def bytes_per_token(self) -> int:
        """See :meth:`Decoder.bytes_per_token`."""
        config = llama_forward.unwrap(self.model).config
        layer = llama_forward.unwrap(self.model).model.layers[0].self_attn
        size = layer.q_proj.weight.element_size()
        return int(2 * config.num_hidden_layers * config.num_key_value_heads * layer.head_dim * size)

    def forget(self) -> None:
        """Drop what is kept between calls."""
        self._prefix = None

    def _empty(self, rows: int, columns: int) -> Tensor:
        """A cache of one layer with room to grow. Zeros where empty columns may be: masked junk still counts if NaN."""
        weights = self.weights
        cache = weights.embedding.new_empty(weights.kv_heads, rows, columns + self._block, weights.head_dim)
        cache[:, :, :columns] = 0
        return cache

    def _grow(self) -> None:
        self.caches = [
            (F.pad(keys, (0, 0, 0, self._block)), F.pad(values, (0, 0, 0, self._block))) for keys, values in self.caches
        ]
        if self.bias is not None:
            self.bias = F.pad(self.bias, (0, self._block))

    def _chunks(self, suffixes: Sequence[TokenIds]) -> list[range]:
        """Consecutive prompts whose tokens are computed together."""
        limit = _PREFILL_TOKENS.get(self.weights.embedding.device.type, _PREFILL_TOKENS_ELSEWHERE)
        chunks, begin, tokens = [], 0, 0
        for index, suffix in enumerate(suffixes):
            if tokens and tokens + len(suffix) > limit:
                chunks.append(range(begin, index))
                begin, tokens = index, 0
            tokens += len(suffix)
        return [*chunks, range(begin, len(suffixes))]

    def _read_prefix(self, ids: TokenIds) -> list[tuple[Tensor, Tensor]]:
        """Keys and values of the shared tokens: the last call's as far as they agree, the rest computed."""
        if not ids:
            nothing = self.weights.embedding.new_empty(self.weights.kv_heads, 0, self.weights.head_dim)
            return [(nothing, nothing) for _ in self.weights.layers]
        made_by = fingerprint(self.model)
        old = self._prefix
        known = common_prefix([old.ids, ids]) if old is not None and old.made_by == made_by else 0
        if old is not None and known == len(ids):
            return [(keys[:, :known], values[:, :known]) for keys, values in old.caches]
        caches: list[tuple[Tensor, Tensor]] = []
        packing = Packing([len(ids) - known], self.weights.embedding.device, known)

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            keys, values = k.transpose(0, 1), v.transpose(0, 1)
            if old is not None and known:
                keys = torch.cat([old.caches[layer][0][:, :known], keys], dim=1)
                values = torch.cat([old.caches[layer][1][:, :known], values], dim=1)
            caches.append((keys.contiguous(), values.contiguous()))
            return _attend_with_offset(packing, q, keys[None], values[None], known)

        tokens = torch.tensor(ids[known:], device=self.weights.embedding.device)
        llama_forward.hidden_states(self.weights, tokens, packing.positions, attend, only=packing.last)
        self.prefill_tokens += len(tokens)
        self._prefix = _Prefix(ids, caches, made_by)
        return caches

    def _read_suffixes(self, chunk: range, suffixes: Sequence[TokenIds], shared: int) -> Tensor:
        """Compute some prompts' own tokens into their rows of the caches; last hidden states ``(chunk, hidden)``."""
        device = self.weights.embedding.device
        mine = [suffixes[index] for index in chunk]
        packing = Packing([len(suffix) for suffix in mine], device, shared)
        rows = packing.row + chunk.start
        columns = packing.column + self.filled - packing.lengths[packing.row]

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            keys, values = self.caches[layer]
            keys[:, rows, columns] = k.transpose(0, 1)
            values[:, rows, columns] = v.transpose(0, 1)
            padded_keys, padded_values = packing.pad(k), packing.pad(v)
            if shared:
                before_keys, before_values = self.prefix[layer]
                padded_keys = torch.cat([before_keys.expand(len(mine), -1, -1, -1), padded_keys], dim=2)
                padded_values = torch.cat([before_values.expand(len(mine), -1, -1, -1), padded_values], dim=2)
            return _attend_with_offset(packing, q, padded_keys, padded_values, shared)

        tokens = torch.tensor([token for suffix in mine for token in suffix], device=device)
        hidden = llama_forward.hidden_states(self.weights, tokens, packing.positions, attend, only=packing.last)
        self.prefill_tokens += len(tokens)
        return hidden

    def _attend_to_past(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """One new token per row: scores against the shared tokens (one product for all rows) and against its own."""
        keys, values = self.caches[layer]
        keys[:, :, self.filled] = k.transpose(0, 1)
        values[:, :, self.filled] = v.transpose(0, 1)
        kv_heads, n, _, dim = keys.shape
        groups = q.shape[1] // kv_heads
        seen = self.filled + 1
        q = (q * dim**-0.5).view(n, kv_heads, groups, dim).transpose(0, 1)  # (K, N, G, D)
        own = q @ keys[:, :, :seen].transpose(2, 3)  # (K, N, G, seen)
        if self.bias is not None:
            own = own + self.bias[:, None, :seen]
        before_keys, before_values = self.prefix[layer]
        shared = before_keys.shape[1]
        if shared:
            before = q.reshape(kv_heads, n * groups, dim) @ before_keys.transpose(1, 2)
            own = torch.cat([before.view(kv_heads, n, groups, shared), own], dim=-1)
        share = own.softmax(-1, dtype=torch.float32).to(q.dtype)
        out = share[..., shared:] @ values[:, :, :seen]  # (K, N, G, D)
        if shared:
            # contiguous: the slice's rows stand too far apart for one matrix product over all of them
            before = share[..., :shared].reshape(kv_heads, n * groups, shared) @ before_values
            out = out + before.view(kv_heads, n, groups, dim)
        return out.transpose(0, 1).reshape(n, -1)


def _attend_with_offset(packing: Packing, q: Tensor, keys: Tensor, values: Tensor, offset: int) -> Tensor:
    """Causal attention of right-padded sequences whose keys have ``offset`` earlier tokens in front, seen by all."""
    groups = q.shape[1] // keys.shape[1]
    keys, values = repeat_heads(keys, groups), repeat_heads(values, groups)
    if not offset:
        out = F.scaled_dot_product_attention(packing.pad(q), keys, values, is_causal=True)
    else:
        mask = torch.ones(packing.longest, packing.longest + offset, dtype=torch.bool, device=q.device).tril(offset)
        out = F.scaled_dot_product_attention(packing.pad(q), keys, values, attn_mask=mask)
    return packing.unpad(out)


def fingerprint(model: nn.Module) -> tuple[object, ...]:
    """Changes whenever the weights do: storage and version of every parameter, and a sample of the values.

    The versions catch optimisers and ``load_state_dict``, the sample catches writes through ``.data``, which bypass
    them (unless they miss every sampled value: call :meth:`LeanDecoder.forget` after changing single weights so).
    """
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


class GenericDecoder:
    """The model's own ``forward`` with left padding; any causal model of transformers that keeps a KV cache."""

    def __init__(self, model: nn.Module) -> None:
        self.model: Any = model
        inner = llama_forward.unwrap(model)
        accepted = inspect.signature(inner.forward).parameters
        self._takes_positions = "position_ids" in accepted
        self._takes_keep = "logits_to_keep" in accepted
        self.cache: Any = None

    def start(self, prompts: Sequence[TokenIds], rows: Sequence[int]) -> Tensor:
        """See :meth:`Decoder.start`."""
        device = next(self.model.parameters()).device
        longest = max(map(len, prompts))
        # what stands in padding is masked, so any token will do: models without a pad token need none
        ids = torch.tensor([(0,) * (longest - len(p)) + tuple(p) for p in prompts], device=device)
        lengths = torch.tensor([len(p) for p in prompts], device=device)
        self.mask = (torch.arange(longest, device=device) >= longest - lengths[:, None]).long()
        extra: dict[str, Any] = {"logits_to_keep": 1} if self._takes_keep else {}
        if self._takes_positions:
            extra["position_ids"] = (self.mask.cumsum(-1) - 1).clamp(min=0)
        out = self.model(input_ids=ids, attention_mask=self.mask, use_cache=True, **extra)
        self.cache = getattr(out, "past_key_values", None)
        if self.cache is None or not hasattr(self.cache, "batch_select_indices"):
            raise ValueError(
                f"{type(llama_forward.unwrap(self.model)).__name__} keeps no key-value cache that transformers' Cache "
                "classes describe, so it can't be sampled from here; serve it (vllm) and use openai:MODEL"
            )
        self.positions = lengths
        logits: Tensor = out.logits[:, -1]
        if len(rows) != len(prompts) or list(rows) != list(range(len(prompts))):
            index = torch.tensor(rows, device=device)
            self.keep(index)
            logits = logits.index_select(0, index)
        return logits

    def step(self, tokens: Tensor) -> Tensor:
        """See :meth:`Decoder.step`."""
        self.mask = F.pad(self.mask, (0, 1), value=1)
        extra = {"position_ids": self.positions[:, None]} if self._takes_positions else {}
        out = self.model(
            input_ids=tokens[:, None], attention_mask=self.mask, past_key_values=self.cache, use_cache=True, **extra
        )
        self.cache = out.past_key_values
        self.positions = self.positions + 1
        logits: Tensor = out.logits[:, -1]
        return logits

    def keep(self, rows: Tensor) -> None:
        """See :meth:`Decoder.keep`."""
        self.cache.batch_select_indices(rows)
        self.mask = self.mask.index_select(0, rows)
        self.positions = self.positions.index_select(0, rows)

    def bytes_per_token(self) -> int:
        """See :meth:`Decoder.bytes_per_token`. An upper estimate: full attention in every layer."""
        config = llama_forward.unwrap(self.model).config.get_text_config()
        heads = config.num_attention_heads
        kv_heads = getattr(config, "num_key_value_heads", None) or heads
        dim = getattr(config, "head_dim", None) or config.hidden_size // heads
        return int(2 * config.num_hidden_layers * kv_heads * dim * next(self.model.parameters()).element_size())
