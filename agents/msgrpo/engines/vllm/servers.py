"""vLLM servers as one engine: requests are shared among them, and all of them get every update.

A server that stops answering is left out, and its requests go to the others, which have the same weights; at every
update it is tried again. Without any server the iteration fails, and the run can be resumed.
"""

import asyncio
import warnings
from collections.abc import Sequence

from agents.models.answers import NEVER_CLOSED, LegalAnswers
from agents.models.base import Decoding
from agents.models.local.transformers import TransformersModel
from agents.models.reasoning import Begun, behind_reasoning
from agents.models.vllm import going_on, held_to, joined, sampling_fields, tokens_left
from agents.msgrpo.engines.engine import EngineParts, Weights
from agents.msgrpo.engines.vllm.server import Server, UnreachableError
from agents.msgrpo.engines.vllm.updaters import DEV_MODE, Updater
from agents.msgrpo.errors import ConfigError, RolloutError
from agents.turn import Prompt, Turn, prefix_of

ATTEMPTS = 3
"""Times that a request is sent to one server before it is given up for down."""


class ServersEngine:
    """An :class:`~agents.msgrpo.engines.engine.AsyncRolloutEngine` over one or more vLLM servers.

    Args:
        parts: what the run gives; the learner's tokenizer makes the token ids that are sent.
        urls: the servers' addresses.
        updater: brings them new weights.
        model: the model's name there; empty: the first that each of them lists.
        timeout: seconds for one request or update.

    Raises:
        ConfigError: an address that is none or comes twice, or a server that isn't vLLM's.
        RolloutError: a server that doesn't answer.
    """

    shared = True
    """The engines of all learning processes stand for the same servers."""

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
        """The servers that answer now."""
        return [server for server in self.servers if server.url not in self.down]

    def why_unconstrained(self, reasons: bool) -> str | None:
        """Why answers can't be held to legal ones; ``None`` where they can."""
        return NEVER_CLOSED if reasons else None

    async def generate_async(
        self, prompt: Prompt, decoding: Decoding, seed: tuple[int, ...], answers: LegalAnswers | None = None
    ) -> Turn:
        """The completion of one prompt, by the server with the fewest requests in flight."""
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
        """The answer of every server to one prompt."""

        async def ask_all() -> list[Turn]:
            (ids,) = self._encoder.encode([prompt])
            try:
                return [await server.generate(ids, sampling_fields(decoding, seed)) for server in self.up]
            finally:
                await self.aclose()

        return asyncio.run(ask_all())

    def update_weights(self, weights: Weights, version: int) -> None:
        """Send new weights to every server that answers.

        Raises:
            ConfigError: a server that wasn't started for it.
            RolloutError: none answers, or one refuses.
        """
        if self.rank:  # the first process brings them
            for server in self.servers:
                self.updater.assume(server)
                server.version = version
            self.down.clear()
            return
        self.updater.prepare(weights, version)
        for server in self.servers:
            try:
                self._renew(server, version)
            except UnreachableError as error:
                self._leave_out(server, str(error))
            else:
                self.down.discard(server.url)
        if not self.up:
            raise RolloutError(
                f"no server took the new weights: {', '.join(sorted(self.down))} don't answer. Start them again, then "
                "resume the run"
            )

    def _renew(self, server: Server, version: int) -> None:
        server.tell("/pause?mode=wait", needs=DEV_MODE)
        try:
            self.updater.send(server, version)
            server.tell("/reset_prefix_cache", needs=DEV_MODE)
            server.tell("/update_weight_version", {"new_version": str(version)}, needs=DEV_MODE)
        finally:
            server.tell("/resume", needs=DEV_MODE)
        server.version = version

    def _leave_out(self, server: Server, why: str) -> None:
        if server.url not in self.down:
            self.down.add(server.url)
            left = len(self.up)
            warnings.warn(
                f"{why}. It is left out until an update reaches it again; {left} of {len(self.servers)} servers go on",
                RuntimeWarning,
                stacklevel=2,
            )

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        for server in self.servers:
            await server.aclose()

    def close(self) -> None:
        """Remove the files of the last update; the servers go on."""
        self.updater.close()
