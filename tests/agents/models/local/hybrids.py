"""Random models of a few thousand weights whose layers aren't all attention, by their names in transformers."""

from typing import Any

import torch
import transformers

_SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 512,
}
_LINEAR = {
    "head_dim": 8,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 2,
    "layer_types": ["linear_attention", "full_attention"],
}
_SETTINGS: dict[str, dict[str, Any]] = {
    "Jamba": _SHAPE
    | {"attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2, "expert_layer_offset": 1}
    | {"num_experts": 2, "mamba_d_state": 8, "use_mamba_kernels": False},
    "FalconH1": _SHAPE
    | {"mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_state": 8, "mamba_n_groups": 1},
    "Qwen3Next": _SHAPE
    | _LINEAR
    | {"num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32},
    "Lfm2": _SHAPE | {"layer_types": ["conv", "full_attention"]},
    "Mamba": {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 8},
    "MiniMax": _SHAPE
    | {"num_local_experts": 2, "num_experts_per_tok": 1, "head_dim": 8}
    | {"layer_types": ["linear_attention", "full_attention"]},
}
PLAYABLE = ("Jamba", "FalconH1", "Qwen3Next", "Lfm2")
"""Their caches pick and drop rows as ours does."""

UNPLAYABLE = ("Mamba", "MiniMax")
"""Padding changes what they say, or their caches can't drop rows."""


def make_hybrid(kind: str, vocabulary: int) -> Any:
    torch.manual_seed(0)
    tokens = {"vocab_size": vocabulary, "eos_token_id": 0, "pad_token_id": 0, "bos_token_id": None}
    config = getattr(transformers, f"{kind}Config")(**_SETTINGS[kind], **tokens)
    return transformers.AutoModelForCausalLM.from_config(config).eval()
