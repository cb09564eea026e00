"""Make a model ready to be trained: checks, gradient checkpointing, number types, and the LoRA adapter."""

import warnings
from collections.abc import Collection
from copy import deepcopy
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from torch import nn

from agents.common.reading import read_json
from agents.models.local.forward.llama_forward import unwrap
from agents.models.local.loading.adapters import WEIGHTS, check_shards, not_safetensors
from agents.models.local.loading.load import damaged, fast_dtype, pick_device
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.errors import ConfigError, UnusableModelError, check_installed, refused
from agents.msgrpo.learner.scoring import tree_attention

ModuleT = TypeVar("ModuleT", bound=torch.nn.Module)


def with_adapter(model: Any, config: MSGRPOConfig) -> Any:
    """Return the model with an adapter to train, if the settings ask for one or it came with one; else as it is.

    An adapter that was loaded is frozen, as for play, and trained on with its own rank and scale. An adapter that a
    program has made trainable itself is left as that program wants it.
    """
    if hasattr(model, "peft_config"):
        _check_agreement(model, config)
        if not any(parameter.requires_grad for parameter in model.parameters()):
            model.set_adapter(model.active_adapter)  # peft's way to let its gradients through
            _let_gradients_in(model, config)
        return model
    targets: Any = list(config.lora_targets)
    if not config.lora_rank:
        if config.lora_targets != MSGRPOConfig().lora_targets:
            raise ConfigError(
                f"lora_targets = {targets!r} with lora_rank = 0, where all weights are trained: set lora_rank, such as "
                "lora_rank = 16, or leave lora_targets out"
            )
        return model
    check_installed("lora_rank needs", "peft")
    import peft

    settings = peft.LoraConfig(
        r=config.lora_rank, lora_alpha=config.lora_alpha, lora_dropout=0.0, task_type="CAUSAL_LM",
        target_modules="all-linear" if targets == ["all-linear"] else targets,
    )  # fmt: skip
    _let_gradients_in(model, config)
    refusing = refused(f"lora_targets = {targets!r} can't be used")
    with refusing, warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore", FutureWarning)  # peft asks transformers by names that are being retired
        torch.manual_seed(config.seed)
        return peft.get_peft_model(model, settings)


def check_same_adapter(model: Any, folder: Path) -> None:
    """Refuse to resume with an adapter of another kind than that of the checkpoint, or with none."""
    own = getattr(model, "peft_config", None) and model.peft_config[model.active_adapter]
    file = folder / "adapter_config.json"
    there = read_json(file) if file.is_file() else {}
    pairs: dict[str, tuple[Any, Any]] = {"lora_rank": (getattr(own, "r", 0), there.get("r", 0))}
    if own and there:
        sets = (own.target_modules or (), there.get("target_modules") or ())
        now, was = (sorted(_last_names(targets)) for targets in sets)
        pairs["lora_targets"] = (now, was)
    for name, (now, was) in pairs.items():
        if now != was:
            holds = f"has an adapter of {name} = {was!r}" if there else "holds no adapter"
            raise ConfigError(
                f"{name} = {now!r}, but the checkpoint {folder} {holds}: accepted is {name} = {was!r}, as adapters are "
                "of one kind for a whole run, or a new run from the checkpoint's model"
            )


def _last_names(targets: str | Collection[str]) -> set[str]:
    return {name.rpartition(".")[2] for name in ([targets] if isinstance(targets, str) else targets)}


def copy_of_trained(module: ModuleT) -> ModuleT:
    """Return a copy that has weights of its own if the module is trained, and shares the frozen ones."""
    return deepcopy(module, {id(each): each for each in module.parameters() if not each.requires_grad})


def _let_gradients_in(model: Any, config: MSGRPOConfig) -> None:
    if config.gradient_checkpointing:
        unwrap(model).enable_input_require_grads()  # else the checkpointed layers see no input that needs a gradient


def _check_agreement(model: Any, config: MSGRPOConfig) -> None:
    """Refuse settings of an adapter, other than defaults, that aren't those of the one that is there."""
    own, default = model.peft_config[model.active_adapter], MSGRPOConfig()
    rank, alpha = getattr(own, "r", 0), getattr(own, "lora_alpha", 0)
    named = _last_names(own.target_modules or ())
    said = {
        "lora_rank": (config.lora_rank != default.lora_rank, rank),
        # a rank that is named names the scale too, which is alpha / rank
        "lora_alpha": (config.lora_rank != default.lora_rank or config.lora_alpha != default.lora_alpha, alpha),
        "lora_targets": (config.lora_targets != default.lora_targets, sorted(named)),
    }
    for name, (is_said, there) in said.items():
        asked = getattr(config, name)
        agrees = set(asked) == named if name == "lora_targets" else asked == there
        if is_said and not agrees:
            raise ConfigError(
                f"{name} = {list(asked) if isinstance(asked, tuple) else asked!r}, but the model has an adapter "
                f"already, with {name} = {there!r}, and that one is trained on: leave lora_rank, lora_alpha and "
                "lora_targets out, or begin from its base model for an adapter of another kind"
            )


def prepare_model(model: Any, tokenizer: Any, config: MSGRPOConfig) -> nn.Module:
    """Check a model, put the adapter on it and switch off dropout; return it or its peft wrapper."""
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
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for name in ("attention_dropout", "dropout", "attn_dropout"):  # given to functional dropout
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
    choose_attention(model, config)
    model.train(config.gradient_checkpointing)  # transformers checkpoints in training mode only
    if config.gradient_checkpointing:
        checkpoint_layers(model)
    return model  # type: ignore[no-any-return]


def choose_attention(model: Any, config: MSGRPOConfig) -> None:
    """Let FlexAttention compute trees, if the settings ask for it, or leave it open and it works here."""
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
    reason = tree_attention.why_no_tree_attention(heads, kv_heads, dim, dtype, parameter.device)
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


def load_weights(model: nn.Module, folder: Path) -> None:
    """Put a checkpoint's weights into a model of the same kind, exactly as they were saved."""
    from transformers import AutoModelForCausalLM

    check_same_adapter(model, folder)
    adapted = hasattr(model, "peft_config")
    if not any(folder.glob(WEIGHTS if adapted else "*.safetensors")):
        raise ConfigError(str(not_safetensors(folder)))
    try:
        if adapted:
            import peft

            peft.set_peft_model_state_dict(model, peft.load_peft_weights(str(folder), device="cpu"))
            return
        check_shards(folder)
        own: Any = deepcopy(model.config)  # the folder's may be anybody's, and is of the same model if its weights fit
        own._attn_implementation = None
        dtype = next(model.parameters()).dtype
        saved = AutoModelForCausalLM.from_pretrained(folder, config=own, dtype=dtype, use_safetensors=True)
        model.load_state_dict(saved.state_dict())
    except SafetensorError as error:
        raise ConfigError(f"{damaged(str(folder), error)}, or resume from another checkpoint") from error
    except RuntimeError as error:
        raise ConfigError(f"the checkpoint {folder} is of another model: {str(error).splitlines()[-1]}") from None
    except ValueError as error:
        raise ConfigError(str(error)) from None


def autocast_dtype(config: MSGRPOConfig) -> torch.dtype | None:
    """Return the type of autocast, if the matrix products are in another type than the weights."""
    return None if product_dtype(config) == config.param_dtype else torch.bfloat16


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
