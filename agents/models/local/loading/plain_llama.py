"""Small Llama models without transformers' modelling code, whose import takes longer than many a whole run.

The :class:`LlamaForCausalLM` here only holds a folder's weights under transformers' names, for the lean forward pass.
Training, ``generate`` and saving get the real one through ``TransformersModel.model``.
"""

from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from agents.common.reading import read_json
from agents.models.local.loading.adapters import why_out_of_bounds
from agents.models.local.loading.gguf import made_from_gguf
from agents.models.local.loading.load import pick_device, pick_dtype

_LARGEST_FILE = 64 * 2**20  # bytes; above, reading takes the time and not the import
_SIZES = (
    *("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"),
    *("num_key_value_heads", "head_dim", "max_position_embeddings"),
)
_USUAL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_act": "silu",
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": True,
    "dtype": "float32",
}


def load_plain(source: str | Path, *, dtype: str, device: str) -> tuple[Any, Any] | None:
    """Return a small model's weights and its tokenizer; ``None`` for other models, on a GPU, in another number type."""
    folder = Path(source).expanduser()
    if dtype not in ("auto", "float32") or not (folder / "config.json").is_file() or find_spec("transformers") is None:
        return None
    if pick_dtype(dtype, torch.device("cpu"), dequantised=made_from_gguf(folder)) != torch.float32:
        return None
    try:
        if read_json(folder / "tokenizer_config.json")["tokenizer_class"] != "PreTrainedTokenizerFast":
            return None  # others have Python of their own
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if pick_device(device).type != "cpu" or (model := read_plain_llama(folder)) is None:
        return None
    from transformers import PreTrainedTokenizerFast

    return model, PreTrainedTokenizerFast.from_pretrained(folder)


class LlamaForCausalLM(nn.Module):
    """A Llama's weights, named as in transformers; a RuntimeError for tensors other than the configuration asks for."""

    def __init__(self, config: dict[str, Any], weights: dict[str, Tensor], eos_token_id: Any = None) -> None:
        super().__init__()
        self.config = SimpleNamespace(**{"eos_token_id": None, "is_encoder_decoder": False, **config})
        self.config.get_text_config = lambda: self.config
        self.generation_config = SimpleNamespace(eos_token_id=eos_token_id)
        vocabulary, hidden = config["vocab_size"], config["hidden_size"]
        self.model: Any = nn.Module()
        # a table of its own: on the meta device embeddings alone import torch's compiler to be initialised
        self.model.embed_tokens = nn.Embedding(vocabulary, hidden, _weight=torch.empty(vocabulary, hidden))
        self.model.layers = nn.ModuleList(_layer(config) for _ in range(config["num_hidden_layers"]))
        self.model.norm = nn.RMSNorm(hidden)
        self.model.rotary_emb = _Rotary(config["head_dim"], config["rope_parameters"]["rope_theta"])
        self.load_state_dict(weights, assign=True)
        self.lm_head = _linear(hidden, vocabulary)
        self.lm_head.weight = self.model.embed_tokens.weight  # tied


def _layer(config: dict[str, Any]) -> Any:
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    queries, keys = (config[f"num_{kind}_heads"] * config["head_dim"] for kind in ("attention", "key_value"))
    layer: Any = nn.Module()
    layer.input_layernorm, layer.post_attention_layernorm = nn.RMSNorm(hidden), nn.RMSNorm(hidden)
    layer.self_attn, layer.mlp = nn.Module(), nn.Module()
    layer.self_attn.head_dim = config["head_dim"]
    layer.self_attn.q_proj, layer.self_attn.o_proj = _linear(hidden, queries), _linear(queries, hidden)
    layer.self_attn.k_proj, layer.self_attn.v_proj = _linear(hidden, keys), _linear(hidden, keys)
    layer.mlp.gate_proj, layer.mlp.up_proj = _linear(hidden, inner), _linear(hidden, inner)
    layer.mlp.down_proj = _linear(inner, hidden)
    return layer


def _linear(columns: int, rows: int) -> nn.Linear:
    return nn.Linear(columns, rows, bias=False, device="meta")  # the weights come from the file


class _Rotary(nn.Module):
    """Cosines and sines of positions, as transformers' default rotary embedding computes them."""

    rope_type = "default"

    def __init__(self, size: int, theta: float) -> None:
        super().__init__()
        self.inverse = 1.0 / (theta ** (torch.arange(0, size, 2, dtype=torch.int64).float() / size))

    def forward(self, like: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``(1, P, head_dim)`` each, in the dtype of ``like``, of positions ``(1, P)``."""
        angles = positions[..., None].float() * self.inverse
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos().to(like.dtype), angles.sin().to(like.dtype)


def read_plain_llama(folder: str | Path) -> LlamaForCausalLM | None:
    """Return a folder's model, if it is Llama as ``textbench`` makes it, with all settings as in :func:`_is_known`;
    ``None`` for anything else: transformers loads it, or reports what is wrong."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    folder = Path(folder)
    file, generation = folder / "model.safetensors", folder / "generation_config.json"
    try:
        config = read_json(folder / "config.json")
        if not _is_known(config) or file.stat().st_size > _LARGEST_FILE:
            return None
        eos = read_json(generation).get("eos_token_id") if generation.exists() else None
        weights = load_file(file)
        if any(tensor.dtype != torch.float32 for tensor in weights.values()):
            return None
        return LlamaForCausalLM(config, weights, eos).eval()
    except (OSError, ValueError, AttributeError, TypeError, RuntimeError, SafetensorError):
        return None


def _is_known(config: Any) -> bool:
    if not isinstance(config, dict):
        return False
    rope = config.get("rope_parameters")
    return (
        why_out_of_bounds(config) is None
        and all(type(config.get(name)) is int and config[name] > 0 for name in _SIZES)
        and type(config.get("rms_norm_eps")) is float
        and all(config.get(name) == value for name, value in _USUAL.items())
        and isinstance(rope, dict)
        and set(rope) == {"rope_theta", "rope_type"}
        and rope["rope_type"] == "default"
        and isinstance(rope["rope_theta"], int | float)
        and rope["rope_theta"] > 0
        and not {"quantization_config", "auto_map", "layer_types", "sliding_window"} & set(config)
    )
