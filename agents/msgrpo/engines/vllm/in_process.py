"""vLLM in this process: new weights go from the learner's tensors into the engine's, without a file between.

The engine is built from the model's configuration alone, as all of its weights arrive by the first update.
"""

import os
import tempfile
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from agents.models.local.forward.llama_forward import unwrap
from agents.models.vllm import VLLMModel
from agents.models.vllm_worker import renew_output_layer
from agents.msgrpo.engines.engine import EngineParts, InThisProcess, Weights
from agents.msgrpo.errors import ConfigError

ONE_PROCESS = "VLLM_ENABLE_V1_MULTIPROCESSING"


class InProcessEngine(InThisProcess):
    """A sampler over ``vllm.LLM``, whose arguments follow from the run if they aren't given."""

    _model: VLLMModel

    def __init__(self, parts: EngineParts, llm: Mapping[str, Any]) -> None:
        sizes = {name: llm.get(name, 1) for name in ("tensor_parallel_size", "pipeline_parallel_size")}
        if parts.processes > 1 or any(size != 1 for size in sizes.values()):
            raise ConfigError(
                f"engine = 'vllm' in this process is for one learning process and one device, got {parts.processes} "
                f"processes and {sizes}: start vLLM servers and name them in engine_urls"
            )
        # tensors reach the engine by reference; between processes they would have to be sent
        os.environ[ONE_PROCESS] = "0"
        config = parts.config
        with tempfile.TemporaryDirectory(prefix="textbench-vllm-") as folder:
            write_configuration(parts, Path(folder))
            length = config.max_prompt_tokens + config.max_response_tokens
            context = getattr(unwrap(parts.model).config.get_text_config(), "max_position_embeddings", None)
            settings = {
                "dtype": str(parts.dtype).removeprefix("torch."),
                "load_format": "dummy",
                "max_model_len": min(length, context or length),
                **({"enforce_eager": True} if next(parts.model.parameters()).device.type == "cpu" else {}),
                **llm,
            }
            self._model = VLLMModel(folder, engine=settings)
        self.name = f"vllm:{getattr(unwrap(parts.model).config, '_name_or_path', '') or 'model'}"
        self.version = -1

    @property
    def llm(self) -> Any:
        return self._model.llm

    def why_unconstrained(self, reasons: bool) -> str | None:
        return self._model.why_unconstrained(reasons)

    def update_weights(self, weights: Weights, version: int) -> None:
        self.llm.collective_rpc("reload_weights", kwargs={"weights_iterator": weights})
        self.llm.apply_model(renew_output_layer)
        self.llm.reset_prefix_cache()
        self.version = version

    def close(self) -> None:
        core = getattr(getattr(self.llm, "llm_engine", None), "engine_core", None)
        if core is not None:
            core.shutdown()


def write_configuration(parts: EngineParts, folder: Path) -> None:
    """Write a model's folder without its weights: configuration and tokenizer."""
    model = unwrap(parts.model)
    config = deepcopy(model.config)
    config.architectures = config.architectures or [type(model).__name__]  # a model that was never saved has none
    config.save_pretrained(folder)
    if getattr(model, "generation_config", None) is not None:
        model.generation_config.save_pretrained(folder)
    parts.tokenizer.save_pretrained(folder)
