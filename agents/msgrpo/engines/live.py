"""Sampling in this process: from the very weights that are trained, or from a copy of them."""

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from agents.models.local.forward.layers import adds_a_matrix
from agents.models.local.forward.llama_forward import unwrap
from agents.models.local.transformers import TransformersModel
from agents.msgrpo.engines.engine import Engine, EngineParts, InThisProcess, Weights
from agents.msgrpo.errors import UnusableModelError
from agents.msgrpo.plugins import configured
from textgames.names import did_you_mean


@configured
class Live:
    """The model that is trained, or a copy of it if its weights can't be sampled from; without options."""

    def build(self, parts: EngineParts) -> Engine:
        if parts.moving:
            return CopyEngine(parts.model, parts.tokenizer, parts.dtype)
        return LiveEngine(parts.model, parts.tokenizer)


class LiveEngine(InThisProcess):
    """Samples from the very model that is trained, so there is nothing to update."""

    _model: TransformersModel

    def __init__(self, model: nn.Module, tokenizer: Any) -> None:
        self._model = TransformersModel(model, tokenizer)
        try:
            self._model.check()
        except ValueError as error:
            raise UnusableModelError(str(error)) from error
        self.name = self._model.name
        self.version = 0

    @property
    def local_model(self) -> TransformersModel:
        """The model that samples, for credit that scores responses under other prompts."""
        return self._model

    def why_unconstrained(self, reasons: bool) -> None:
        return None

    def update_weights(self, weights: Weights, version: int) -> None:
        self.version = version

    def forget(self) -> None:
        """Drop the prefixes kept from earlier calls: with them a resumed run would not be equal to the last bit."""
        self._model.forget()


class CopyEngine(LiveEngine):
    """Samples from a copy of a model in this process, kept in ``dtype``; weights arrive by :meth:`update_weights`."""

    def __init__(self, model: nn.Module, tokenizer: Any, dtype: torch.dtype) -> None:
        base: Any = unwrap(model)
        device = next(base.parameters()).device
        twin = random_model(base.config, base.config._attn_implementation, dtype, device)
        super().__init__(twin.eval().requires_grad_(False), tokenizer)
        self._parameters = dict(twin.named_parameters())

    def update_weights(self, weights: Weights, version: int) -> None:
        """Copy the new weights in; a ValueError for a name that is unknown or missing: old weights would play on."""
        missing = dict(self._parameters)
        with torch.no_grad():
            for name, tensor in weights:
                if name not in self._parameters:
                    raise ValueError(
                        f"the copy that is sampled from has no parameter {name!r}{did_you_mean(name, self._parameters)}"
                    )
                self._parameters[name].copy_(tensor)
                missing.pop(name, None)
        self.version = version
        if missing:
            raise ValueError(f"no new weights came for {', '.join(missing)}: the copy would be sampled with old ones")


def random_model(config: Any, attention: str, dtype: torch.dtype, device: torch.device) -> nn.Module:
    """Return a model of a transformers configuration whose weights are yet to come."""
    from transformers import AutoModelForCausalLM

    make: Any = AutoModelForCausalLM.from_config
    with torch.device(device):
        made: nn.Module = make(config, dtype=dtype, attn_implementation=attention)
    return made


@torch.no_grad()
def merged_weights(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yield ``(name, tensor)`` of every parameter of the Hugging Face model, adapters added in; it isn't changed."""
    base = unwrap(model)
    if base is model:
        yield from ((name, parameter.detach()) for name, parameter in model.named_parameters())
        return
    layers = {name: module for name, module in base.named_modules() if hasattr(module, "get_delta_weight")}
    for name, parameter in base.named_parameters():
        owner, _, kind = name.rpartition(".")
        if owner.endswith(".base_layer"):
            place, tensor = owner.removesuffix(".base_layer"), parameter.detach()
            layer = layers[place]
            if not adds_a_matrix(layer):
                tensor = getattr(_merged_by_peft(layer, place), kind).detach()
            elif kind == "weight":
                for adapter in layer.active_adapters:
                    tensor = tensor + layer.get_delta_weight(adapter).to(tensor.dtype)
            yield f"{place}.{kind}", tensor
        elif "lora_" not in name:
            yield name, parameter.detach()


def _merged_by_peft(layer: Any, name: str) -> nn.Module:
    copied = copy.deepcopy(layer)
    try:
        copied.merge(safe_merge=True, adapter_names=copied.active_adapters)
    except (NotImplementedError, RuntimeError) as error:
        raise UnusableModelError(
            f"the adapter {', '.join(map(repr, layer.active_adapters))} of {name} can't be merged into its weights "
            f"({' '.join(str(error).split())}): sample it from the live weights instead, by "
            "engine = 'live', staleness = 0, dtype = 'float32' and one process"
        ) from error
    merged: nn.Module = copied.get_base_layer()
    return merged
