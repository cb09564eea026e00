"""A lean forward pass over the weights of a Llama-type model, for sampling and for training on short sequences.

For models of a million parameters the Python around the matrix products costs more than the products. So tokens of all
sequences are *packed* into one ``(T, hidden)`` matrix; query, key and value are one matrix product, gate and up another
(small models only: it copies the weights, as does adding LoRA adapters to them; large models keep adapters as two thin
products beside); and attention is a function that is passed in, so prefill, decoding and training share the rest.

:func:`read_weights` reads the model's parameters as they are now, and gradients flow back to them. Covered: Llama,
Mistral, Qwen2 and Qwen3 (dense, full attention), plain or with LoRA; :func:`why_not` has the reason for anything else.

Shapes: ``T`` packed tokens, ``H`` query heads, ``K`` key-value heads, ``G = H / K``, ``D`` head dimension.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from agents.models.local.forward.layers import Linear, fused, gated_silu, is_plain_lora, outputs, read_linear, rms_norm

_MODEL_CLASSES = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
_FIXED_ROPE = ("default", "linear", "llama3", "yarn")  # others change with the length of the sequence
_ROPE_TABLES: WeakKeyDictionary[nn.Module, tuple[Tensor, Tensor]] = WeakKeyDictionary()
_FUSE_BELOW_BYTES = 256 * 2**20  # above, copying the weights costs more than the operations that it saves


class Layer(NamedTuple):
    """Weights of one decoder layer. ``qkv`` and ``gate_up`` hold one fused map, or the separate ones in order."""

    attention_norm: Tensor
    qkv: tuple[Linear, ...]
    q_norm: Tensor | None
    k_norm: Tensor | None
    out: Linear
    mlp_norm: Tensor
    gate_up: tuple[Linear, ...]
    down: Linear


class LlamaWeights(NamedTuple):
    """A model's weights, and the few numbers of its configuration that matter.

    ``cos`` and ``sin`` are ``(positions, D)``; the first half of ``sin`` is negated, see :func:`_rotate`.
    """

    embedding: Tensor
    layers: tuple[Layer, ...]
    norm: Tensor
    head: Linear
    heads: int
    kv_heads: int
    head_dim: int
    eps: float
    cos: Tensor
    sin: Tensor


Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""``(layer index, q (T, H, D), k (T, K, D), v (T, K, D)) -> (T, H * D)``; q and k are rotated already."""


def unwrap(model: nn.Module) -> Any:
    """Return the Hugging Face model inside a peft wrapper, or the model itself."""
    inner = getattr(model, "get_base_model", None)
    return inner() if callable(inner) else model


def why_not(model: nn.Module) -> str | None:
    """Return the reason why :func:`read_weights` doesn't cover this model; ``None`` if it does."""
    inner = unwrap(model)
    if type(inner).__name__ not in _MODEL_CLASSES:
        return f"{type(inner).__name__} is not one of {', '.join(_MODEL_CLASSES)}"
    config = inner.config
    if config.hidden_act != "silu":
        return f"its activation is {config.hidden_act!r}, not 'silu'"
    if any(kind != "full_attention" for kind in getattr(config, "layer_types", None) or ()) or (
        getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True)
    ):
        return "it has sliding-window attention"
    if getattr(inner.model.rotary_emb, "rope_type", None) not in _FIXED_ROPE:
        return "its rotary embedding depends on the sequence length"
    first = inner.model.layers[0]
    maps = [getattr(first.self_attn, f"{name}_proj") for name in "qkvo"]
    maps += [getattr(first.mlp, f"{name}_proj") for name in ("gate", "up", "down")]
    odd = [m for m in (*maps, inner.lm_head) if type(m) is not nn.Linear and not is_plain_lora(m)]
    if odd or type(inner.model.embed_tokens) is not nn.Embedding:
        return f"its layers are {type(odd[0]).__name__ if odd else type(inner.model.embed_tokens).__name__}"
    if any(p.device.type == "meta" for p in inner.parameters()) or len({p.device for p in inner.parameters()}) > 1:
        return "its weights are not on one device"
    return None


def read_weights(model: nn.Module, *, fuse: bool | None = None) -> LlamaWeights:
    """Return the model's weights as they are now; a ValueError has the reason if it isn't covered.

    ``fuse`` (``None``: small models) copies query, key and value (and gate and up) into one matrix each, LoRA adapters
    added in. Without it the large tensors are the model's own, and adapters stay beside them as factors.
    """
    reason = why_not(model)
    if reason is not None:
        raise ValueError(f"the lean forward pass can't run this model: {reason}")
    inner = unwrap(model)
    config, body = inner.config, inner.model
    if fuse is None:
        fuse = sum(p.numel() * p.element_size() for p in inner.parameters()) <= _FUSE_BELOW_BYTES
    read = partial(read_linear, merge=fuse)
    layers = []
    for layer in body.layers:
        attention, mlp = layer.self_attn, layer.mlp
        layers.append(
            Layer(
                attention_norm=layer.input_layernorm.weight,
                qkv=fused([read(attention.q_proj), read(attention.k_proj), read(attention.v_proj)], fuse),
                q_norm=attention.q_norm.weight if hasattr(attention, "q_norm") else None,
                k_norm=attention.k_norm.weight if hasattr(attention, "k_norm") else None,
                out=read(attention.o_proj),
                mlp_norm=layer.post_attention_layernorm.weight,
                gate_up=fused([read(mlp.gate_proj), read(mlp.up_proj)], fuse),
                down=read(mlp.down_proj),
            )
        )
    cos, sin = _rope_tables(inner)
    return LlamaWeights(
        embedding=body.embed_tokens.weight,
        layers=tuple(layers),
        norm=body.norm.weight,
        head=read(inner.lm_head),
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        head_dim=body.layers[0].self_attn.head_dim,
        eps=config.rms_norm_eps,
        cos=cos,
        sin=sin,
    )


def _rope_tables(inner: Any) -> tuple[Tensor, Tensor]:
    """Return cosines and signed sines of every position, from the model's own rotary module; they are kept."""
    weight = inner.model.embed_tokens.weight
    kept = _ROPE_TABLES.get(inner.model.rotary_emb)
    if kept is not None and kept[0].device == weight.device and kept[0].dtype == weight.dtype:
        return kept
    # not inference tensors even if made while sampling: training needs them too
    with torch.inference_mode(False), torch.no_grad():
        positions = torch.arange(inner.config.max_position_embeddings, device=weight.device)
        cos, sin = inner.model.rotary_emb(weight, positions[None])
    half = sin.shape[-1] // 2
    tables = cos[0].contiguous(), torch.cat((-sin[0, :, :half], sin[0, :, half:]), dim=-1).contiguous()
    _ROPE_TABLES[inner.model.rotary_emb] = tables
    return tables


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate ``x (T, heads, D)``: ``x * cos + (-x2, x1) * sin``, the minus sign being in the table."""
    return torch.addcmul(x * cos, x.roll(x.shape[-1] // 2, -1), sin)


def hidden_states(
    weights: LlamaWeights, ids: Tensor, positions: Tensor, attend: Attend, *, only: Tensor | None = None
) -> Tensor:
    """Return final hidden states ``(T, hidden)``, normalised, of packed tokens ``ids (T,)`` at ``positions (T,)``; with
    ``only``, those of these tokens: in the last layer the others need no more than their keys and values."""
    dim, eps = weights.head_dim, weights.eps
    qkv_widths = [dim * heads for heads in (weights.heads, weights.kv_heads, weights.kv_heads)]
    x = F.embedding(ids, weights.embedding)
    cos, sin = weights.cos[positions][:, None], weights.sin[positions][:, None]
    # under autocast a product's input is converted once rather than for every product with it
    kind = x.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
    for index, layer in enumerate(weights.layers):
        gate_up_widths = [layer.down.weight.shape[1]] * 2
        normed = rms_norm(x, layer.attention_norm, eps, dtype)
        q, k, v = (part.view(len(ids), -1, dim) for part in outputs(layer.qkv, normed, qkv_widths))
        if layer.q_norm is not None and layer.k_norm is not None:
            q, k = F.rms_norm(q, (dim,), layer.q_norm, eps), F.rms_norm(k, (dim,), layer.k_norm, eps)
        seen = attend(index, _rotate(q, cos, sin), _rotate(k, cos, sin), v)
        if only is not None and index == len(weights.layers) - 1:
            x, seen = x.index_select(0, only), seen.index_select(0, only)
        x = x + layer.out(seen)
        normed = rms_norm(x, layer.mlp_norm, eps, dtype)
        gate, up = outputs(layer.gate_up, normed, gate_up_widths)
        x = x + layer.down(gated_silu(gate, up))
    return F.rms_norm(x, (x.shape[-1],), weights.norm, eps)


def logits(weights: LlamaWeights, hidden: Tensor) -> Tensor:
    """Return next-token logits ``(T, vocabulary)`` of final hidden states ``(T, hidden)``."""
    return weights.head(hidden)


class Packing:
    """The places of packed sequences' tokens in a right-padded ``(sequences, longest)`` table."""

    def __init__(self, lengths: Sequence[int], device: torch.device, first_position: int = 0) -> None:
        size = torch.tensor(lengths, dtype=torch.long)
        self.count, self.longest = len(lengths), max(lengths)
        self.even = min(lengths) == self.longest
        ends = size.cumsum(0)
        row = torch.repeat_interleave(torch.arange(self.count), size)
        column = torch.arange(int(ends[-1])) - (ends - size)[row]
        self.lengths, self.row, self.column = size.to(device), row.to(device), column.to(device)
        self.flat = self.row * self.longest + self.column  # (T,) into the flattened table
        self.last = (ends - 1).to(device)  # (sequences,) each one's last token among the packed ones
        self.positions = self.column + first_position

    def pad(self, x: Tensor) -> Tensor:
        """Spread ``(T, heads, D)`` to ``(sequences, heads, longest, D)``, zeros after the end."""
        if self.even:
            table = x.reshape(self.count, self.longest, *x.shape[1:])
        else:
            # index_copy rather than assignment: it works under autograd without an extra copy of the zeros
            table = x.new_zeros(self.count * self.longest, *x.shape[1:]).index_copy(0, self.flat, x)
            table = table.view(self.count, self.longest, *x.shape[1:])
        return table.transpose(1, 2)

    def unpad(self, table: Tensor) -> Tensor:
        """Pack ``(sequences, H, longest, D)`` to ``(T, H * D)``."""
        flat = table.transpose(1, 2).reshape(self.count * self.longest, -1)
        return flat if self.even else flat.index_select(0, self.flat)


class CausalAttention:
    """Attention of packed whole sequences on themselves, as training needs it. An :data:`Attend`."""

    def __init__(self, packing: Packing) -> None:
        self.packing = packing

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        groups = q.shape[1] // k.shape[1]
        pad = self.packing.pad
        # padding is on the right, so the causal mask alone hides it
        out = F.scaled_dot_product_attention(
            pad(q), repeat_heads(pad(k), groups), repeat_heads(pad(v), groups), is_causal=True
        )
        return self.packing.unpad(out)


def repeat_heads(x: Tensor, groups: int) -> Tensor:
    """Repeat the heads of ``(B, K, S, D)`` to ``(B, K * groups, S, D)``, once per query head that uses them."""
    return x if groups == 1 else x.repeat_interleave(groups, dim=1)
