"""One vLLM server: token ids to it, sampled ids with log-probabilities and weight versions from it, and its control.

Two routes sample. ``/inference/v1/generate`` (a server started with ``--enable-scale-out``) says which weights made
which tokens; ``/v1/completions`` (every server) doesn't, and its tokens are taken for those of the latest update.
Control needs ``VLLM_SERVER_DEV_MODE=1``. (vLLM 0.32)
"""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp

from agents.models.served.loops import PerLoop
from agents.models.vllm import cut_off
from agents.msgrpo.errors import ConfigError, RolloutError
from agents.turn import Turn, Usage, WeightsSpan

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

    Args:
        url: its address.
        model: the model's name there; empty: the first that it lists.
        timeout: seconds for one request.

    Attributes:
        model: the name that requests are sent with; an adapter's where one is loaded.
        version: of the weights that it was sent last.
        reports_versions: whether its answers say which weights made them.
        in_flight: requests that wait for an answer.

    Raises:
        ConfigError: not an address.
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
        """One request, waited for.

        Raises:
            UnreachableError: there is no answer.
        """
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data=data, method=method, headers={"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                return Answer(answer.status, answer.read().decode("utf-8", "replace"))
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.read().decode("utf-8", "replace"))
        except (OSError, urllib.error.URLError) as error:
            reason = getattr(error, "reason", error)
            raise UnreachableError(f"the server {self.url} doesn't answer: {reason}") from None

    def tell(self, path: str, body: Mapping[str, Any] | None = None, *, needs: str) -> None:
        """One request that has to succeed.

        Raises:
            ConfigError: the server has no such route; ``needs`` says what to start it with.
            RolloutError: it refused, with what it said.
        """
        answer = self.ask(path, body)
        if answer.status in (404, 405):
            raise ConfigError(f"the server {self.url} has no {path.partition('?')[0]}: start it with {needs}")
        if not answer.ok:
            raise RolloutError(f"{self.url}{path} answered with status {answer.status}: {shortened(answer.body)}")

    def connect(self) -> None:
        """Find out the model's name where it isn't given, and that the server is there.

        Raises:
            UnreachableError: it isn't.
            ConfigError: it serves no model of that name.
        """
        answer = self.ask("/v1/models", method="GET")
        if not answer.ok:
            raise ConfigError(f"{self.url} is no vLLM server: /v1/models answered with status {answer.status}")
        names = [one["id"] for one in json.loads(answer.body)["data"]]
        if self.model and self.model not in names:
            raise ConfigError(f"{self.url} serves no model {self.model!r}; it has {', '.join(names)}")
        self.model = self.model or names[0]

    # ---------------------------------------------------------------- sampling

    async def generate(self, prompt_ids: tuple[int, ...], fields: Mapping[str, Any]) -> Turn:
        """The completion of one prompt, with these sampling parameters.

        Raises:
            UnreachableError: there is no answer.
            RolloutError: the server refuses the request.
        """
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
                return self._read(GENERATE, answer, prompt_ids, logprobs_of_generate)
            self.reports_versions = False
        body = {"prompt": list(prompt_ids), "model": self.model, "return_token_ids": True, **fields}
        return self._read(COMPLETIONS, await self._post(COMPLETIONS, body), prompt_ids, logprobs_of_completions)

    async def _post(self, path: str, body: Mapping[str, Any]) -> Answer:
        self.in_flight += 1
        try:
            async with self._sessions.get(self._connections).post(self.url + path, json=body) as answer:
                return Answer(answer.status, await answer.text())
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            said = f"{type(error).__name__}: {error}".rstrip(": ")
            raise UnreachableError(f"no answer from {self.url}{path}: {said}") from None
        finally:
            self.in_flight -= 1

    def _read(self, path: str, answer: Answer, prompt_ids: tuple[int, ...], logprobs_of: Any) -> Turn:
        if not answer.ok:
            raise RolloutError(f"{self.url}{path} answered with status {answer.status}: {shortened(answer.body)}")
        (choice,) = json.loads(answer.body)["choices"]
        if (message := cut_off(choice["finish_reason"])) is not None:
            raise UnreachableError(f"{self.url}: {message}")
        token_ids = tuple(choice["token_ids"] or ())
        return Turn(
            response=choice["text"],
            prompt_ids=prompt_ids,
            response_ids=token_ids,
            logprobs=logprobs_of(choice),
            finish_reason=choice["finish_reason"],
            usage=Usage(len(prompt_ids), len(token_ids)),
            served_by=self.url,
            weights=self._spans(choice.get("weight_versions"), len(token_ids)),
        )

    def _spans(self, told: Any, tokens: int) -> tuple[WeightsSpan, ...]:
        """Which weights made the tokens.

        Raises:
            UnreachableError: others than the server was sent.
        """
        for one in told or ():
            if one["version"] != str(self.version):
                raise UnreachableError(
                    f"the server {self.url} answers with weights {one['version']!r} and was sent {self.version}: "
                    "it was restarted, or something else changed its weights"
                )
        return (WeightsSpan(self.version, 0, tokens),)

    def _connections(self) -> aiohttp.ClientSession:
        timeout = aiohttp.ClientTimeout(total=self.timeout, sock_connect=CONNECT_SECONDS)
        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout)

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        session = self._sessions.pop()
        if session is not None:
            await session.close()


def logprobs_of_generate(choice: Mapping[str, Any]) -> tuple[float, ...] | None:
    """The sampled tokens' log-probabilities in a choice of ``/inference/v1/generate``."""
    told = choice.get("logprobs")
    return None if told is None else tuple(one["logprob"] for one in told["content"])


def logprobs_of_completions(choice: Mapping[str, Any]) -> tuple[float, ...] | None:
    """The sampled tokens' log-probabilities in a choice of ``/v1/completions``."""
    told = choice.get("logprobs")
    return None if told is None else tuple(told["token_logprobs"])


def shortened(text: str) -> str:
    """What a server said, in one line that isn't too long."""
    line = " ".join(text.split())
    return line if len(line) <= MESSAGE_LENGTH else line[:MESSAGE_LENGTH] + "..."
