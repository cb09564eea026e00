"""vLLM servers as one engine: requests are shared among them, and all of them get every update.

A server that stops answering is left out, and its requests are sent to the others, until the next update tries it
again. Without any server the iteration fails, and the run can be resumed.

Two routes sample. ``/inference/v1/generate`` (a server started with ``--enable-scale-out``) says which weights made
which tokens; ``/v1/completions`` (every server) doesn't, and its tokens are taken for those of the latest update.
Control needs ``VLLM_SERVER_DEV_MODE=1``. (vLLM 0.32) An update is ``pause -> new weights -> forget cached prefixes ->
label -> resume``.
"""

import asyncio
import json
import shutil
import socket
import tempfile
import warnings
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

import aiohttp
from torch import Tensor, nn

from agents.models.answers import NEVER_CLOSED, LegalAnswers
from agents.models.base import Decoding
from agents.models.local.loading.adapters import save_pretrained
from agents.models.local.transformers import TransformersModel
from agents.models.reasoning import Begun, behind_reasoning
from agents.models.served.pacing import PerLoop
from agents.models.vllm import cut_off, going_on, held_to, joined, sampling_fields, tokens_left
from agents.msgrpo.engines.engine import EngineExtras, EngineParts, Weights
from agents.msgrpo.errors import ConfigError, RolloutError
from agents.policy import run_coroutine
from agents.turn import Prompt, Turn, Usage, WeightsSpan, prefix_of

# ---------------------------------------------------------------- one server

GENERATE, COMPLETIONS = "/inference/v1/generate", "/v1/completions"
CONNECT_SECONDS = 10.0
MESSAGE_LENGTH = 300


class UnreachableError(RolloutError):
    """There is no answer from a server, so another one may be asked."""


class Answer(NamedTuple):
    """Status and body of a server's answer."""

    status: int
    body: str

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


class Server:
    """A server at ``http://HOST:PORT`` (``/v1`` behind it is taken off).

    ``model`` is the name that requests are sent with, ``version`` of the weights that it was sent last;
    ``reports_versions``: its answers say which weights made them; ``in_flight`` requests wait for an answer.
    """

    def __init__(self, url: str, model: str, timeout: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"engine_urls has {url!r}; accepted: addresses like http://HOST:8000")
        self.url = url.rstrip("/").removesuffix("/v1")
        self.model, self.timeout = model, timeout
        self.version, self.in_flight = -1, 0
        self.reports_versions = True
        self._sessions: PerLoop[aiohttp.ClientSession] = PerLoop()

    # ---------------------------------------------------------------- control, while nothing is sampled

    def ask(self, path: str, body: Mapping[str, Any] | None = None, method: str = "POST") -> Answer:
        async def once() -> Answer:
            async with self._connections() as session:
                return await self._request(session, method, path, body)

        return run_coroutine(once())

    async def _request(
        self, session: aiohttp.ClientSession, method: str, path: str, body: Mapping[str, Any] | None
    ) -> Answer:
        try:
            async with session.request(method, self.url + path, json=body) as answer:
                return Answer(answer.status, await answer.text(errors="replace"))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            said = f"{type(error).__name__}: {error}".rstrip(": ")
            raise UnreachableError(f"the server {self.url} doesn't answer {path}: {said}") from None

    def tell(self, path: str, body: Mapping[str, Any] | None = None, *, needs: str) -> None:
        """Send a request that has to succeed; ``needs`` says what a server without that route is to be started with."""
        answer = self.ask(path, body)
        if answer.status in (404, 405):
            raise ConfigError(f"the server {self.url} has no {path.partition('?')[0]}: start it with {needs}")
        self._check(path, answer)

    def _check(self, path: str, answer: Answer) -> None:
        if not answer.ok:
            body = " ".join(answer.body.split())
            said = body if len(body) <= MESSAGE_LENGTH else body[:MESSAGE_LENGTH] + "..."
            raise RolloutError(f"{self.url}{path} answered with status {answer.status}: {said}")

    def connect(self) -> None:
        answer = self.ask("/v1/models", method="GET")
        if not answer.ok:
            raise ConfigError(f"{self.url} is no vLLM server: /v1/models answered with status {answer.status}")
        names = [one["id"] for one in json.loads(answer.body)["data"]]
        if self.model and self.model not in names:
            raise ConfigError(f"{self.url} serves no model {self.model!r}; it has {', '.join(names)}")
        self.model = self.model or names[0]

    # ---------------------------------------------------------------- sampling

    async def generate(self, prompt_ids: tuple[int, ...], fields: Mapping[str, Any]) -> Turn:
        if self.reports_versions:
            body = {
                "token_ids": list(prompt_ids),
                "model": self.model,
                "output_mode": "text",
                "return_token_ids": True,
                "sampling_params": dict(fields),
            }
            answer = await self._post(GENERATE, body)
            if answer.status not in (403, 404, 405):
                return self._read(GENERATE, answer, prompt_ids)
            self.reports_versions = False
        body = {"prompt": list(prompt_ids), "model": self.model, "return_token_ids": True, **fields}
        return self._read(COMPLETIONS, await self._post(COMPLETIONS, body), prompt_ids)

    async def _post(self, path: str, body: Mapping[str, Any]) -> Answer:
        self.in_flight += 1
        try:
            return await self._request(self._sessions.get(self._connections), "POST", path, body)
        finally:
            self.in_flight -= 1

    def _read(self, path: str, answer: Answer, prompt_ids: tuple[int, ...]) -> Turn:
        self._check(path, answer)
        (choice,) = json.loads(answer.body)["choices"]
        if (message := cut_off(choice["finish_reason"])) is not None:
            raise UnreachableError(f"{self.url}: {message}")
        token_ids, told = tuple(choice["token_ids"] or ()), choice.get("logprobs")
        if told is not None:
            told = tuple(told["token_logprobs"] if path == COMPLETIONS else (one["logprob"] for one in told["content"]))
        for one in choice.get("weight_versions") or ():
            if one["version"] != str(self.version):
                raise UnreachableError(
                    f"the server {self.url} answers with weights {one['version']!r} and was sent {self.version}: "
                    "it was restarted, or something else changed its weights"
                )
        return Turn(
            response=choice["text"],
            prompt_ids=prompt_ids,
            response_ids=token_ids,
            logprobs=told,
            finish_reason=choice["finish_reason"],
            usage=Usage(len(prompt_ids), len(token_ids)),
            served_by=self.url,
            weights=(WeightsSpan(self.version, 0, len(token_ids)),),
        )

    def _connections(self) -> aiohttp.ClientSession:
        timeout = aiohttp.ClientTimeout(total=self.timeout, sock_connect=CONNECT_SECONDS)
        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout)

    async def aclose(self) -> None:
        session = self._sessions.pop()
        if session is not None:
            await session.close()


# ---------------------------------------------------------------- new weights

DEV_MODE = "VLLM_SERVER_DEV_MODE=1 in its environment (it opens the routes that change weights)"
ADAPTER = "textbench"


class Updater(Protocol):
    """Brings weights to servers."""

    def prepare(self, weights: Weights, version: int) -> None:
        """Take the new weights, once for all servers."""

    def send(self, server: Server, version: int) -> None:
        """Bring them to one server, which is paused."""

    def assume(self, server: Server) -> None:
        """Note that another process brought them."""
        return

    def close(self) -> None:
        """Remove what is left of the last update."""


class _FileUpdater(Updater):
    """Brings weights by a folder for each version; that of an older version is removed when the next one is written."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder or tempfile.mkdtemp(prefix="textbench-weights-")).expanduser()
        self._folder.mkdir(parents=True, exist_ok=True)
        if not folder:  # goes with this object, at the latest when Python ends
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._written: Path | None = None

    def _place(self, version: int) -> Path:
        """Return a new, empty folder for a version. The one before it isn't read any more."""
        self.close()
        self._written = self._folder / f"version-{version}"
        self.close()
        self._written.mkdir()
        return self._written

    def close(self) -> None:
        if self._written is not None:
            shutil.rmtree(self._written, ignore_errors=True)


class DiskUpdater(_FileUpdater):
    """Brings the weights as a safetensors file that every server reads.

    On a CPU a tied output layer is packed again by :mod:`agents.models.vllm_worker`, if the server was started with it.
    """

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self._without_extension: set[str] = set()

    def prepare(self, weights: Weights, version: int) -> None:
        from safetensors.torch import save_file

        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in weights}
        save_file(tensors, self._place(version) / "model.safetensors", metadata={"format": "pt"})

    def send(self, server: Server, version: int) -> None:
        body = {"method": "reload_weights", "kwargs": {"weights_path": str(self._written)}}
        server.tell("/collective_rpc", body, needs=DEV_MODE)
        renew = {"method": "renew_output_layer"}
        if server.url not in self._without_extension and not server.ask("/collective_rpc", renew).ok:
            self._without_extension.add(server.url)  # asked again, it would write a traceback to its log each time


class AdapterUpdater(_FileUpdater):
    """Brings the LoRA adapter alone, in peft's format; servers have the base model, which never changes."""

    def __init__(self, folder: str, model: nn.Module) -> None:
        super().__init__(folder)
        self._model = model

    def prepare(self, weights: Weights, version: int) -> None:
        save_pretrained(self._model, self._place(version))

    def send(self, server: Server, version: int) -> None:
        body = {"lora_name": ADAPTER, "lora_path": str(self._written), "load_inplace": True}
        server.tell("/v1/load_lora_adapter", body, needs="--enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=1")
        self.assume(server)

    def assume(self, server: Server) -> None:
        server.model = ADAPTER


class NCCLUpdater(Updater):
    """Brings weights from the learner's GPU to the servers' by vLLM's transfer engine, with a group for each server.

    It needs vLLM installed here as well, and servers started with ``--weight-transfer-config '{"backend": "nccl"}'``.
    """

    def __init__(self, address: str, timeout: float, rank: int) -> None:
        self._address, self._timeout, self._rank = address or socket.gethostname(), timeout, rank
        self._source: _Source | None = None
        self._engines: dict[str, Any] = {}

    def prepare(self, weights: Weights, version: int) -> None:
        self._source = _Source(weights)  # several servers are sent to in turn

    def send(self, server: Server, version: int) -> None:
        engine = self._engines.get(server.url)
        if engine is None:
            engine = self._engines[server.url] = self._connect(server)
        engine.source = self._source
        try:
            engine.send_weights()
        except RuntimeError as error:
            raise RolloutError(f"sending weights to {server.url} by NCCL failed: {error}") from error

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


class _Source(list[tuple[str, Tensor]]):
    """The weights as vLLM's transfer engines read them: what they are, and then themselves, in the same order."""

    def metadata(self) -> list[Any]:
        from vllm.distributed.weight_transfer.base import ParamMeta

        return [ParamMeta(name, tensor.dtype, tuple(tensor.shape)) for name, tensor in self]


# ---------------------------------------------------------------- all servers

ATTEMPTS = 3
"""Times that a request is sent to one server before it is given up for down."""


class ServersEngine(EngineExtras):
    """A sampler over one or more vLLM servers, the same for all learning processes."""

    shared = True

    def __init__(
        self, parts: EngineParts, urls: Sequence[str], updater: Updater, model: str = "", timeout: float = 600.0
    ) -> None:
        self.servers = [Server(url, model, timeout) for url in urls]
        if len({server.url for server in self.servers}) != len(self.servers):
            raise ConfigError(f"engine_urls names a server twice: {', '.join(urls)}")
        for server in self.servers:
            server.connect()
        self.down: set[str] = set()
        self.updater, self.rank = updater, parts.rank
        self._encoder = TransformersModel(parts.model, parts.tokenizer)
        self.name = f"vllm at {', '.join(server.url for server in self.servers)}"

    @property
    def up(self) -> list[Server]:
        return [server for server in self.servers if server.url not in self.down]

    def why_unconstrained(self, reasons: bool) -> str | None:
        return NEVER_CLOSED if reasons else None

    async def generate_async(
        self, prompt: Prompt, decoding: Decoding, seed: tuple[int, ...], answers: LegalAnswers | None = None
    ) -> Turn:
        (ids,), begun = self._encoder.encode([prompt]), Begun(prefix_of(prompt), self._encoder.opening(prompt))
        fields = sampling_fields(decoding, seed, begun.opening)
        if answers is not None:
            fields["structured_outputs"] = {"choice": answers.endings()}
        failure = "there is no server"
        while servers := self.up:
            server = min(servers, key=lambda one: one.in_flight)
            for attempt in range(ATTEMPTS):
                try:
                    done = await server.generate(ids, fields)
                    while tokens_left(done, decoding, begun) > 0:
                        more = await server.generate(*going_on(done, decoding, seed, begun))
                        done = joined(done, more, decoding.stop, begun, self._encoder.decode)
                    response = behind_reasoning(done, begun.opening, decoding.stop, self._encoder.decode)
                    return held_to(response, answers, lambda: self._encoder.vocabulary)
                except UnreachableError as error:
                    failure = str(error)
                    await asyncio.sleep(0.1 * 2**attempt)
                except RolloutError as error:  # it answers, and another one would answer the same
                    return Turn("", finish_reason="error", error=str(error))
            self._leave_out(server, failure)
        return Turn("", finish_reason="error", error=f"{failure}; no other server is left")

    def answers(self, prompt: Prompt, decoding: Decoding, seed: tuple[int, ...]) -> list[Turn]:
        async def ask_all() -> list[Turn]:
            (ids,) = self._encoder.encode([prompt])
            try:
                return [await server.generate(ids, sampling_fields(decoding, seed)) for server in self.up]
            finally:
                await self.aclose()

        return run_coroutine(ask_all())

    def update_weights(self, weights: Weights, version: int) -> None:
        """Send new weights to every server that answers; a RolloutError if none does, or one refuses them."""
        if self.rank:  # the first process brings them
            for server in self.servers:
                self.updater.assume(server)
                server.version = version
            self.down.clear()
            return
        self.updater.prepare(weights, version)
        for server in self.servers:
            try:
                server.tell("/pause?mode=wait", needs=DEV_MODE)
                try:
                    self.updater.send(server, version)
                    server.tell("/reset_prefix_cache", needs=DEV_MODE)
                    server.tell("/update_weight_version", {"new_version": str(version)}, needs=DEV_MODE)
                finally:
                    server.tell("/resume", needs=DEV_MODE)
            except UnreachableError as error:
                self._leave_out(server, str(error))
            else:
                server.version = version
                self.down.discard(server.url)
        if not self.up:
            raise RolloutError(
                f"no server took the new weights: {', '.join(sorted(self.down))} don't answer. Start them again, then "
                "resume the run"
            )

    def _leave_out(self, server: Server, why: str) -> None:
        if server.url not in self.down:
            self.down.add(server.url)
            left = f"{len(self.up)} of {len(self.servers)} servers continue"
            warnings.warn(
                f"{why}. It is left out until an update reaches it again; {left}", RuntimeWarning, stacklevel=2
            )

    async def aclose(self) -> None:
        for server in self.servers:
            await server.aclose()

    def close(self) -> None:
        self.updater.close()
