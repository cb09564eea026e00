"""Models behind OpenAI-compatible servers: OpenAI itself, vLLM, llama.cpp, Ollama, SGLang, gateways.

The ``openai`` package sends the requests: it retries 408, 409, 429, 5xx, time-outs and lost connections with jittered
back-off, honours ``Retry-After``, and retries no other 4xx. Which answers count as a response of the model
and which as a failure of the provider is in ``_chat_answers.py``.
"""

import asyncio
import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from agents.models.base import Completion, Decoding, seed_number
from agents.models.chat_answers import BadAnswerError, read_completion
from agents.models.provider import Provider
from agents.models.secrets import Endpoint, Redactor
from agents.turn import Prompt

if TYPE_CHECKING:
    from openai import AsyncOpenAI

DEFAULT_BASE_URL = "https://api.openai.com/v1"
OMITTABLE = ("temperature", "top_p", "stop", "max_tokens")
_MAX_CONNECTIONS = 4096
_KEEPALIVE_SECONDS = 4.0  # under the 5 s after which uvicorn, and so most local servers, drops an idle connection
_CONNECT_SECONDS = 10.0
_MESSAGE_LENGTH = 400


class MissingAPIKeyError(ValueError):
    """There is no key for a server that needs one. Said when the model is built, before any request."""


class OpenAIModel:
    """An :class:`~agents.models.base.AsyncLanguageModel` over the chat-completions protocol.

    Args:
        model: the model's name at the server.
        base_url: ``http://HOST:PORT/v1``; ``OPENAI_BASE_URL`` or OpenAI's own when not given. User information in it is
            sent as basic authorisation, its query with every request.
        api_key: ``OPENAI_API_KEY`` when not given. Only OpenAI's own server needs one.
        timeout: seconds to wait for one answer, of one attempt.
        max_retries: further attempts after a failure that may pass.
        omit: parameters that are not sent, for servers that refuse them: any of temperature, top_p, stop, max_tokens.
            An omitted stop string still ends the response, here instead of at the server.
        max_tokens_field: what the server calls the limit. ``"auto"`` sends ``max_tokens``, and
            ``max_completion_tokens`` once the server has said that it wants that.
        send_seed: send a seed made from the decision's seed, for servers that sample reproducibly.
        extra_body: further fields of every request.
        headers: further headers of every request; their values are treated as secrets.

    Raises:
        MissingAPIKeyError: no key for OpenAI's own server.
        ValueError: a malformed URL or an unknown parameter in ``omit``.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 120.0,
        max_retries: int = 6,
        omit: Collection[str] = (),
        max_tokens_field: Literal["auto", "max_tokens", "max_completion_tokens"] = "auto",
        send_seed: bool = False,
        extra_body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        if not model:
            raise ValueError("a model needs a name, as in openai:gpt-4o-mini")
        if not timeout > 0 or max_retries < 0:
            raise ValueError(f"timeout is above 0 and max_retries at least 0, got {timeout!r} and {max_retries!r}")
        if unknown := [name for name in omit if name not in OMITTABLE]:
            raise ValueError(f"omit takes {', '.join(OMITTABLE)}, got {', '.join(map(repr, unknown))}")
        self.name = model
        self._endpoint = Endpoint.parse(base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_BASE_URL)
        self._key = (api_key or os.environ.get("OPENAI_API_KEY") or "").strip()
        if not (self._key.isascii() and self._key.isprintable()) or " " in self._key:
            raise ValueError(
                "the API key has characters that no key has (spaces, line breaks, non-ASCII); set it again"
            )
        if not self._key and self._endpoint.url.rstrip("/") == DEFAULT_BASE_URL:
            raise MissingAPIKeyError(
                f"the model {model!r} at {DEFAULT_BASE_URL} needs a key: export OPENAI_API_KEY=..., or name another "
                "server with --base-url (base_url=, OPENAI_BASE_URL); local servers need none"
            )
        self._timeout, self._max_retries = float(timeout), int(max_retries)
        self._omit, self._send_seed = frozenset(omit), send_seed
        self._choose_limit = max_tokens_field == "auto"
        self._limit_field = "max_tokens" if self._choose_limit else max_tokens_field
        self._extra_body, self._headers = dict(extra_body or {}), dict(headers or {})
        self._redact = Redactor([self._key, *self._endpoint.secrets, *self._headers.values()])
        import_module("openai")  # half a second, which must not stand still in the middle of the first requests
        self._clients: dict[asyncio.AbstractEventLoop, AsyncOpenAI] = {}
        self._response_type: Any = None
        self._transport_errors: tuple[type[Exception], ...] = (OSError,)

    @property
    def base_url(self) -> str:
        """The server's URL, without anything secret."""
        return self._endpoint.url

    @property
    def settings(self) -> dict[str, Any]:
        """What decides the responses, as plain data without secrets."""
        return {
            "kind": "openai",
            "name": self.name,
            "base_url": self.base_url,
            "omit": sorted(self._omit),
            "send_seed": self._send_seed,
            "extra_body": self._extra_body,
        }

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, base_url={self.base_url!r})"

    # ---------------------------------------------------------------- requests

    async def generate_async(self, prompt: Prompt, decoding: Decoding, seed: tuple[int, ...]) -> Completion:
        """The completion of one prompt; a provider's failure comes back in its ``error``."""
        import openai

        started = perf_counter()
        try:
            body = await self._post(self._request(prompt, decoding, seed))
            completion = read_completion(body, decoding)
        except openai.APIStatusError as error:
            completion = self._failed(f"status {error.status_code} from {self.base_url}: {_message(error)}")
        except openai.APIConnectionError as error:
            completion = self._failed(self._lost(error))
        except BadAnswerError as error:
            completion = self._failed(f"{self.base_url} answered with {error}")
        except self._transport_errors as error:  # what the package lets through: an answer that isn't even HTTP
            completion = self._failed(f"no usable answer from {self.base_url}: {type(error).__name__}: {error}")
        return replace(completion, seconds=perf_counter() - started)

    def _request(self, prompt: Prompt, decoding: Decoding, seed: tuple[int, ...]) -> dict[str, Any]:
        """The request's body."""
        fields: dict[str, Any] = {
            "model": self.name,
            "messages": [{"role": message.role, "content": message.content} for message in prompt],
            "temperature": decoding.temperature,
            "max_tokens": decoding.max_tokens,
        }
        if decoding.top_p != 1:
            fields["top_p"] = decoding.top_p
        if decoding.stop:
            fields["stop"] = list(decoding.stop)
        for name in self._omit:
            fields.pop(name, None)
        if "max_tokens" in fields:
            fields[self._limit_field] = fields.pop("max_tokens")
        if self._send_seed:
            fields["seed"] = seed_number(seed)
        return fields | self._extra_body

    async def _post(self, fields: dict[str, Any]) -> bytes:
        """The body of the server's answer, undecoded: decoding by the package costs as much as the request."""
        import openai

        client = self._client()
        try:
            response = await client.post("/chat/completions", body=fields, cast_to=self._response_type)
        except openai.BadRequestError as error:
            if not (self._choose_limit and "max_tokens" in fields and "max_completion_tokens" in str(error)):
                raise
            # newer models of OpenAI's have another name for the same limit, and say so
            self._limit_field = "max_completion_tokens"
            renamed = {("max_completion_tokens" if k == "max_tokens" else k): v for k, v in fields.items()}
            response = await client.post("/chat/completions", body=renamed, cast_to=self._response_type)
        content: bytes = response.content
        return content

    def _client(self) -> "AsyncOpenAI":
        """The client of the running event loop: connections belong to the loop that opened them."""
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            self._clients = {known: kept for known, kept in self._clients.items() if not known.is_closed()}
            client = self._clients[loop] = self._new_client()
        return client

    def _new_client(self) -> "AsyncOpenAI":
        import openai

        # its transport library is httpx2 since openai 3 and httpx before; the types have the same names
        transport = import_module(type(openai.DEFAULT_CONNECTION_LIMITS).__module__.partition(".")[0])
        self._response_type = transport.Response
        self._transport_errors = (OSError, transport.HTTPError, _aiohttp_error())
        limits = transport.Limits(
            max_connections=_MAX_CONNECTIONS,
            max_keepalive_connections=_MAX_CONNECTIONS,
            keepalive_expiry=_KEEPALIVE_SECONDS,
        )
        headers = dict(self._headers)
        if self._endpoint.userinfo:
            headers["Authorization"] = f"Basic {self._endpoint.secrets[2]}"
        return openai.AsyncOpenAI(
            api_key=self._key or "none",
            base_url=self._endpoint.url,
            timeout=openai.Timeout(self._timeout, connect=min(self._timeout, _CONNECT_SECONDS)),
            max_retries=self._max_retries,
            default_headers=headers,
            default_query=dict(self._endpoint.query),
            http_client=_http_client(limits),
        )

    async def aclose(self) -> None:
        """Close the connections of the running event loop; they are opened again when they are needed."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    # ---------------------------------------------------------------- answers

    def _lost(self, error: BaseException) -> str:
        """What to say of a request without an answer: too late, or no connection, and why.

        The package calls a refused connection a time-out too when its transport is aiohttp, so the causes decide.
        """
        import openai

        causes = [error]
        while (cause := causes[-1].__cause__) is not None:
            causes.append(cause)
        lost = [c for c in causes if isinstance(c, OSError | _aiohttp_error()) and not isinstance(c, TimeoutError)]
        if isinstance(error, openai.APITimeoutError) and not lost:
            attempts = f" in each of {self._max_retries + 1} attempts" if self._max_retries else ""
            return f"no answer from {self.base_url} within {self._timeout:g} s{attempts}"
        return f"no connection to {self.base_url}: {type(causes[-1]).__name__}: {causes[-1]}"

    def _failed(self, message: str) -> Completion:
        text = self._redact(" ".join(message.split()))
        if len(text) > _MESSAGE_LENGTH:
            text = text[:_MESSAGE_LENGTH] + "..."
        return Completion("", finish_reason="error", error=text)


def _http_client(limits: Any) -> Any:
    """The fastest transport that is installed; both have the package's own defaults.

    Over aiohttp a request costs half the processor time (perf/throughput.py measures it).
    """
    import openai

    try:
        import aiohttp  # noqa: F401
    except ImportError:
        return openai.DefaultAsyncHttpxClient(limits=limits)
    return openai.DefaultAioHttpClient(limits=limits)


def _aiohttp_error() -> type[Exception]:
    """What all errors of aiohttp are; where it isn't installed, an error that doesn't occur."""
    try:
        import aiohttp
    except ImportError:
        return BadAnswerError
    return aiohttp.ClientError


def _message(error: Any) -> str:
    """What the server said about a refused request, with advice where there is any."""
    body = error.body
    said = body.get("message") if isinstance(body, dict) else None
    text = said if isinstance(said, str) and said else str(error.message)
    for name in OMITTABLE:
        if error.status_code == 400 and f"'{name}'" in text:
            return f"{text} (omit=[{name!r}] in the agent's options leaves it out)"
    return text


def _missing() -> str | None:
    """Whether there is neither a key nor a server of the user's own."""
    if os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"):
        return None
    return "a key (export OPENAI_API_KEY=...) or a server of your own (--base-url http://127.0.0.1:8000/v1)"


PROVIDER = Provider(
    OpenAIModel,
    description="a model behind an OpenAI-compatible server",
    example="gpt-4o-mini",
    missing=_missing,
)
