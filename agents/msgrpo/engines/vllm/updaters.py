"""How a server gets new weights: through a file, as an adapter, or from GPU to GPU.

``pause -> new weights -> forget cached prefixes -> label -> resume``; an updater does the second of these.
"""

import json
import shutil
import socket
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from agents.models.local.loading.adapters import save_pretrained
from agents.msgrpo.engines.engine import EngineParts, Weights
from agents.msgrpo.engines.vllm.server import Server
from agents.msgrpo.errors import ConfigError, RolloutError

if TYPE_CHECKING:
    from agents.msgrpo.engines.vllm import VLLM

DEV_MODE = "VLLM_SERVER_DEV_MODE=1 in its environment (it opens the routes that change weights)"
ADAPTER = "textbench"


class Updater(Protocol):
    """Brings weights to servers."""

    def prepare(self, weights: Weights, version: int) -> None:
        """Take the new weights, once for all servers."""

    def send(self, server: Server, version: int) -> None:
        """Bring them to one server, which is paused."""

    def assume(self, server: Server) -> None:
        """Take it that another process brought them."""

    def close(self) -> None:
        """Remove what is left of the last update."""


def make_updater(options: "VLLM", name: str, parts: EngineParts) -> Updater:
    """The updater that a run's settings ask for."""
    if name == "nccl":
        return NCCLUpdater(options, parts)
    folder = Path(options.weights_dir).expanduser() if options.weights_dir else None
    return AdapterUpdater(parts, folder) if name == "lora" else DiskUpdater(folder)


class _Files:
    """A folder with one subfolder for each version; those before the latest go when it is everywhere."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="textbench-weights-")) if folder is None else folder
        self.folder.mkdir(parents=True, exist_ok=True)
        if folder is None:  # goes with this object, at the latest when Python ends
            weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self._written: Path | None = None

    def place(self, version: int) -> Path:
        """A new, empty folder for a version. The one before it isn't read any more."""
        if self._written is not None:
            shutil.rmtree(self._written, ignore_errors=True)
        self._written = self.folder / f"version-{version}"
        shutil.rmtree(self._written, ignore_errors=True)
        self._written.mkdir()
        return self._written

    def close(self) -> None:
        if self._written is not None:
            shutil.rmtree(self._written, ignore_errors=True)


class DiskUpdater:
    """The weights as a safetensors file that every server reads.

    On a CPU a tied output layer is packed again by :mod:`agents.models.vllm_worker`, where the server was started with
    it; the canary finds out where it was needed and wasn't there.
    """

    def __init__(self, folder: Path | None) -> None:
        self._files = _Files(folder)
        self._path: Path | None = None
        self._without_extension: set[str] = set()

    def prepare(self, weights: Weights, version: int) -> None:
        from safetensors.torch import save_file

        self._path = self._files.place(version)
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in weights}
        save_file(tensors, self._path / "model.safetensors", metadata={"format": "pt"})

    def send(self, server: Server, version: int) -> None:
        if self._path is None:
            raise RuntimeError("no weights were prepared")
        body = {"method": "reload_weights", "kwargs": {"weights_path": str(self._path)}}
        server.tell("/collective_rpc", body, needs=DEV_MODE)
        renew = {"method": "renew_output_layer"}
        if server.url not in self._without_extension and not server.ask("/collective_rpc", renew).ok:
            self._without_extension.add(server.url)  # asked again, it would write a traceback to its log each time

    def assume(self, server: Server) -> None:
        pass

    def close(self) -> None:
        self._files.close()


class AdapterUpdater:
    """The LoRA adapter alone, in peft's format; servers have the base model, which never changes."""

    def __init__(self, parts: EngineParts, folder: Path | None) -> None:
        self._model, self._files = parts.model, _Files(folder)
        self._path: Path | None = None

    def prepare(self, weights: Weights, version: int) -> None:
        self._path = self._files.place(version)
        save_pretrained(self._model, self._path)

    def send(self, server: Server, version: int) -> None:
        body = {"lora_name": ADAPTER, "lora_path": str(self._path), "load_inplace": True}
        server.tell("/v1/load_lora_adapter", body, needs="--enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=1")
        self.assume(server)

    def assume(self, server: Server) -> None:
        server.model = ADAPTER

    def close(self) -> None:
        self._files.close()


class NCCLUpdater:
    """From the learner's GPU to the servers' by vLLM's own transfer engine; a group of its own for each server.

    Written against vLLM 0.32 (``WeightTransferTrainerFactory``); it needs vLLM installed here as well, and servers
    started with ``--weight-transfer-config '{"backend": "nccl"}'``.
    """

    def __init__(self, options: "VLLM", parts: EngineParts) -> None:
        self._address = options.master_address or socket.gethostname()
        self._timeout, self._rank = options.timeout, parts.rank
        self._source: _Source | None = None
        self._engines: dict[str, Any] = {}

    def prepare(self, weights: Weights, version: int) -> None:
        # several servers are sent to in turn, so one pass over the weights isn't enough
        self._source = _Source(list(weights))

    def send(self, server: Server, version: int) -> None:
        engine = self._engines.get(server.url)
        if engine is None:
            engine = self._engines[server.url] = self._connect(server)
        engine.source = self._source
        try:
            engine.send_weights()
        except RuntimeError as error:
            raise RolloutError(f"sending weights to {server.url} by NCCL failed: {error}") from error

    def assume(self, server: Server) -> None:
        pass

    def _connect(self, server: Server) -> Any:
        try:
            from vllm.distributed.weight_transfer import WeightTransferTrainerFactory
            from vllm.distributed.weight_transfer.clients import HTTPVLLMWeightSyncClient
            from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo
        except ModuleNotFoundError as error:
            raise ConfigError(f"updater = 'nccl' needs vLLM in the learner's environment too: {error}") from None
        answer = server.ask("/get_world_size", method="GET")
        if not answer.ok:
            raise ConfigError(f"the server {server.url} has no /get_world_size: start it with {DEV_MODE}")
        workers = int(json.loads(answer.body)["world_size"])
        with socket.socket() as free:
            free.bind(("", 0))
            port = free.getsockname()[1]
        return WeightTransferTrainerFactory.trainer_init(
            NCCLTrainerInitInfo(self._address, port, 1 + workers, rank=self._rank),
            client=HTTPVLLMWeightSyncClient(server.url, timeout=self._timeout),
            source=self._source,
        )

    def close(self) -> None:
        self._engines.clear()


class _Source:
    """The weights as vLLM's transfer engines read them: what they are, and then themselves, in the same order."""

    def __init__(self, weights: Sequence[tuple[str, Tensor]]) -> None:
        self._weights = weights

    def metadata(self) -> list[Any]:
        from vllm.distributed.weight_transfer.base import ParamMeta

        return [ParamMeta(name, tensor.dtype, tuple(tensor.shape)) for name, tensor in self._weights]

    def __iter__(self) -> Iterator[tuple[str, torch.Tensor]]:
        return iter(self._weights)
