"""The LoRA adapter that is trained: a fresh one, or the one that the model came with, which goes on being trained."""

import copy
import warnings
from collections.abc import Collection
from pathlib import Path
from typing import Any, TypeVar

import torch

from agents.common.reading import read_json
from agents.models.local.forward.llama_forward import unwrap
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.errors import ConfigError
from textgames.extras import install_command

ModuleT = TypeVar("ModuleT", bound=torch.nn.Module)


def with_adapter(model: Any, config: MSGRPOConfig) -> Any:
    """The model with an adapter to train, where the settings ask for one or it came with one; else as it is.

    An adapter that was loaded is frozen, as for play. It is trained on as it is, of its own rank and scale, so that a
    warm start and what is learnt after it are one adapter on the one base. An adapter that a program has made
    trainable itself is left as that program wants it.

    Raises:
        ConfigError: the settings contradict the adapter that is there, or name no modules of the model.
        ModuleNotFoundError: an adapter is asked for, and peft isn't installed.
    """
    if not hasattr(model, "peft_config"):
        if config.lora_rank:
            return _fresh(model, config)
        if config.lora_targets != MSGRPOConfig().lora_targets:
            raise ConfigError(
                f"lora_targets = {list(config.lora_targets)!r} with lora_rank = 0, where all weights are trained: set "
                "lora_rank, such as lora_rank = 16, or leave lora_targets out"
            )
        return model
    _check_agreement(model, config)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        model.set_adapter(model.active_adapter)  # peft's way to let its gradients through
        _let_gradients_in(model, config)
    return model


def check_same_adapter(model: Any, folder: Path) -> None:
    """A run goes on with an adapter of the kind that its checkpoint has, or with none where that has none.

    Raises:
        ConfigError: the settings have made another one.
    """
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
    """The modules' own names, without those of what they are in."""
    return {name.rpartition(".")[2] for name in ([targets] if isinstance(targets, str) else targets)}


def copy_of_trained(module: ModuleT) -> ModuleT:
    """A copy that has weights of its own where the module is trained, and shares the frozen ones."""
    return copy.deepcopy(module, {id(each): each for each in module.parameters() if not each.requires_grad})


def begins_as_base(model: Any) -> bool:
    """Whether a model's adapter adds nothing yet, as a fresh one does: the model without it is the model with it."""
    return not any(weight.any() for name, weight in model.named_parameters() if "lora_B" in name)


def _fresh(model: Any, config: MSGRPOConfig) -> Any:
    try:
        import peft
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"lora_rank needs peft, which is not installed: {install_command('train')}", name="peft"
        ) from error
    targets: Any = list(config.lora_targets)
    if targets == ["all-linear"]:
        targets = "all-linear"
    settings = peft.LoraConfig(
        r=config.lora_rank,
        lora_alpha=config.lora_alpha,
        target_modules=targets,
        lora_dropout=0.0,
        task_type="CAUSAL_LM",
    )
    _let_gradients_in(model, config)
    try:
        with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
            warnings.simplefilter("ignore", FutureWarning)  # peft asks transformers by names that are being retired
            torch.manual_seed(config.seed)
            return peft.get_peft_model(model, settings)
    except ValueError as error:
        raise ConfigError(f"lora_targets = {list(config.lora_targets)!r} can't be used: {error}") from None


def _let_gradients_in(model: Any, config: MSGRPOConfig) -> None:
    if config.gradient_checkpointing:
        unwrap(model).enable_input_require_grads()  # else the checkpointed layers see no input that needs a gradient


def _check_agreement(model: Any, config: MSGRPOConfig) -> None:
    """Refuse settings of an adapter that aren't those of the one that is there. A default says nothing."""
    own, default = model.peft_config[model.active_adapter], MSGRPOConfig()
    rank, alpha = getattr(own, "r", 0), getattr(own, "lora_alpha", 0)
    named = _last_names(own.target_modules or ())
    said = {
        "lora_rank": (config.lora_rank != default.lora_rank, rank),
        # a rank that is said says the scale too, which is alpha / rank
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
