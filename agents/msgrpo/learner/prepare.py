"""Making a model ready to be trained: checks, adapter, gradient checkpointing, reference model."""

import warnings
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import nn

from agents.models.local.forward.llama_forward import unwrap
from agents.models.local.loading.adapters import WEIGHTS, check_shards, not_safetensors
from agents.models.local.loading.load import damaged, fast_dtype, pick_device
from agents.models.local.templates import with_arguments
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.errors import ConfigError, UnusableModelError
from agents.msgrpo.learner.adapter import check_same_adapter, with_adapter
from agents.msgrpo.learner.scoring import tree_attention


def prepare_model(model: Any, tokenizer: Any, config: MSGRPOConfig) -> nn.Module:
    """Check a model, put the adapter on it and switch off everything random in it.

    Sampler and learner must be the same distribution, so dropout is set to zero throughout.

    Returns:
        The model itself, or its peft wrapper.

    Raises:
        UnusableModelError: no causal language model, no tokenizer, one that doesn't fit, nothing to train.
    """
    _check(model, tokenizer, config)
    model = with_adapter(model, config)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not trainable:
        raise UnusableModelError(
            "no parameter of the model requires a gradient (a quantised or frozen model): set lora_rank, for example "
            "--set lora_rank=16, or unfreeze it with model.requires_grad_(True)"
        )
    if any(not parameter.is_floating_point() for parameter in trainable):
        raise UnusableModelError("some trainable parameters are not floating-point: set lora_rank to train an adapter")
    _without_dropout(model)
    choose_attention(model, config)
    model.train(config.gradient_checkpointing)  # transformers checkpoints in training mode only
    if config.gradient_checkpointing:
        checkpoint_layers(model)
    return model  # type: ignore[no-any-return]


def choose_attention(model: Any, config: MSGRPOConfig) -> None:
    """Let FlexAttention compute trees, if the settings ask for it, or leave it open and it works here.

    Raises:
        UnusableModelError: it is asked for and doesn't work here.
    """
    base: Any = unwrap(model)
    asked = config.attention == "flex_attention"
    parameter = next(base.parameters())
    is_open = config.attention == "auto" and parameter.device.type == "cuda"
    if config.packing != "tree" or base.config._attn_implementation != "sdpa" or not (asked or is_open):
        return
    shape = base.config.get_text_config()
    heads = shape.num_attention_heads
    kv_heads = getattr(shape, "num_key_value_heads", None) or heads
    dim = getattr(shape, "head_dim", None) or shape.hidden_size // heads
    dtype = autocast_dtype(config) or parameter.dtype
    reason = tree_attention.why_not(heads, kv_heads, dim, dtype, parameter.device)
    if not reason:
        tree_attention.register()
        base.set_attn_implementation(tree_attention.TREE_ATTENTION)
    elif asked:
        raise UnusableModelError(
            f"attention = 'flex_attention' can't be used here: {reason}; accepted: auto, which takes it where it works"
        )
    else:
        warnings.warn(f"trees get a dense attention mask, as FlexAttention can't be used: {reason}", stacklevel=3)


def checkpoint_layers(model: Any) -> None:
    """Recompute every layer's activations in the backward pass."""
    enable = getattr(model, "activation_checkpointing_enable", None)  # the name in newer transformers
    if enable is not None:
        enable()
    else:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})


def templated(tokenizer: Any, config: MSGRPOConfig) -> Any:
    """The tokenizer with the arguments that the config has for its chat template.

    Raises:
        ConfigError: the template can't be used, or doesn't read them.
    """
    try:
        return with_arguments(tokenizer, config.chat_template_kwargs, config.model or "the model")
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _check(model: Any, tokenizer: Any, config: MSGRPOConfig) -> None:
    name = type(model).__name__
    settings = getattr(model, "config", None)
    if not isinstance(model, nn.Module) or settings is None:
        raise UnusableModelError(
            f"{name} is not a transformers model; load one with AutoModelForCausalLM.from_pretrained"
        )
    if getattr(settings, "is_encoder_decoder", False):
        raise UnusableModelError(f"{name} is an encoder-decoder; accepted: causal (decoder-only) language models")
    if tokenizer is None:
        raise UnusableModelError("the model came without a tokenizer: pass the one it was trained with")
    rows = int(model.get_input_embeddings().weight.shape[0])  # type: ignore[operator]
    if len(tokenizer) > rows:
        raise UnusableModelError(
            f"the tokenizer knows {len(tokenizer)} tokens, the model's embedding has {rows} rows: they don't belong "
            "together (or call model.resize_token_embeddings(len(tokenizer)))"
        )
    context = getattr(settings.get_text_config(), "max_position_embeddings", None)
    if context is not None and context <= config.max_response_tokens:
        raise UnusableModelError(
            f"the model's context is {context} tokens and max_response_tokens is {config.max_response_tokens}, which "
            "leaves no room for a prompt: lower max_response_tokens"
        )


def _without_dropout(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for name in ("attention_dropout", "dropout", "attn_dropout"):  # given to functional dropout
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)


def load_weights(model: nn.Module, folder: Path) -> None:
    """Put a checkpoint's weights into a model of the same kind, exactly as they were saved.

    Raises:
        ConfigError: the checkpoint is of another model, is damaged, or has no adapter where the model has one.
    """
    try:
        _load_weights(model, folder)
    except SafetensorError as error:
        raise ConfigError(f"{damaged(str(folder), error)}, or resume from another checkpoint") from error


def _load_weights(model: nn.Module, folder: Path) -> None:
    from transformers import AutoModelForCausalLM

    check_same_adapter(model, folder)
    adapted = hasattr(model, "peft_config")
    if not any(folder.glob(WEIGHTS if adapted else "*.safetensors")):
        raise ConfigError(str(not_safetensors(folder)))
    if adapted:
        import peft

        peft.set_peft_model_state_dict(model, peft.load_peft_weights(str(folder), device="cpu"))
        return
    try:
        check_shards(folder)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    own: Any = deepcopy(model.config)  # the folder's may be anybody's, and is of the same model if its weights fit
    own._attn_implementation = None
    dtype = next(model.parameters()).dtype
    try:
        saved = AutoModelForCausalLM.from_pretrained(folder, config=own, dtype=dtype, use_safetensors=True)
        model.load_state_dict(saved.state_dict())
    except RuntimeError as error:
        raise ConfigError(f"the checkpoint {folder} is of another model: {str(error).splitlines()[-1]}") from None


def autocast_dtype(config: MSGRPOConfig) -> torch.dtype | None:
    """The type of autocast, where the matrix products are in another type than the weights."""
    dtype = product_dtype(config)
    return None if dtype == config.param_dtype else torch.bfloat16


def product_dtype(config: MSGRPOConfig) -> str:
    """Return the type of the matrix products: the one of the settings, or the one that ``auto`` chooses here."""
    if config.dtype != "auto":
        return config.dtype
    half = config.param_dtype == "bfloat16" or fast_dtype(pick_device(config.device)) == torch.bfloat16
    return "bfloat16" if half else "float32"


def slow_dtype(config: MSGRPOConfig, device: torch.device) -> str:
    """Return a warning if the settings fix a type that this processor is slow in, else an empty text."""
    if product_dtype(config) != "bfloat16" or fast_dtype(device) == torch.bfloat16:
        return ""
    fixed = [name for name in ("dtype", "param_dtype") if getattr(config, name) == "bfloat16"]
    instead = "dtype = 'auto'" + (" and param_dtype = 'float32'" if "param_dtype" in fixed else "")
    return (
        f"{' and '.join(fixed)} = 'bfloat16', for which this processor has no instructions: a training takes several "
        f"times as long as in float32. {instead} takes what is fast here"
    )
