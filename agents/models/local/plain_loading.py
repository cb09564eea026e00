"""Loading a small model without transformers' modelling code, where that gives the same."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from agents.models.local.gguf_files import made_from_gguf
from agents.models.local.loading import pick_device, pick_dtype
from agents.models.local.plain_llama import read_plain_llama

_TOKENIZER = "PreTrainedTokenizerFast"  # others have Python of their own


def load_plain(source: str | Path, *, dtype: str, device: str) -> tuple[Any, Any] | None:
    """A small model's weights and its tokenizer, as :func:`agents.models.local.loading.load_model` gives them.

    ``None`` where that one is needed: for other models, on a GPU, in another number type.
    """
    folder = Path(source).expanduser()
    if dtype not in ("auto", "float32") or not (folder / "config.json").is_file() or find_spec("transformers") is None:
        return None
    if pick_dtype(dtype, torch.device("cpu"), dequantised=made_from_gguf(folder)) != torch.float32:
        return None
    try:
        if json.loads((folder / "tokenizer_config.json").read_text("utf-8"))["tokenizer_class"] != _TOKENIZER:
            return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if pick_device(device).type != "cpu" or (model := read_plain_llama(folder)) is None:
        return None
    from transformers import PreTrainedTokenizerFast

    return model, PreTrainedTokenizerFast.from_pretrained(folder)
