"""One server, asked with the ``openai`` package: within a time, up to a size, and nothing is sent twice unasked.

The package counts a time-out from each byte to the next, reads errors to their end, and repeats requests by itself.
Here the whole request has a time, an answer has a size, and :class:`~agents.models.pacing.Pacer` decides when
a request is sent.
"""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import openai

from agents.models.chat_answers import MAX_ANSWER_BYTES, ProviderError
from agents.models.pacing import Pacer
from agents.redaction import public_url

T = TypeVar("T")

MAX_CONNECTIONS = 4096
KEEPALIVE_SECONDS = 4.0  # under the 5 s after which uvicorn, and so most local servers, drops an idle connection
CONNECT_SECONDS = 10.0


Limits = type(openai.DEFAULT_CONNECTION_LIMITS)
httpx = import_module(Limits.__module__.partition(".")[0])  # the package's transport: httpx2 since openai 3
TRANSPORT_ERRORS: tuple[type[Exception], ...] = (openai.APIConnectionError, httpx.HTTPError, OSError)
with suppress(ImportError):  # without it the package takes another transport
    TRANSPORT_ERRORS += (import_module("aiohttp").ClientError,)


class Answer(NamedTuple):
    """What a server said: the HTTP status, the headers by name in any case, and the body.

    Of a body that is longer than :data:`~agents.models.chat_answers.MAX_ANSWER_BYTES` there is a little more than that.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


class Server:
    """A server, with its own connections for each event loop: connections belong to the loop that opened them.

    Args:
        base_url: the address, with user information and query where it has any.
        key: sent as the bearer's token, unless the address has user information.
        headers: of every request.
        timeout: seconds for one request, from connecting to the last byte of the answer.
        patience: as of :class:`~agents.models.pacing.Pacer`.
    """

    def __init__(self, base_url: str, key: str, headers: Mapping[str, str], timeout: float, patience: float) -> None:
        parts = urlsplit(base_url)
        self.url = public_url(base_url)
        self._key, self._query = key, dict(parse_qsl(parts.query, keep_blank_values=True))
        self._headers = dict(headers)
        if userinfo := unquote(parts.netloc.rpartition("@")[0]):
            self._headers = {"Authorization": f"Basic {base64.b64encode(userinfo.encode()).decode()}"} | self._headers
        self._timeout, self._patience = timeout, patience
        self._connections: dict[asyncio.AbstractEventLoop, tuple[openai.AsyncOpenAI, Pacer]] = {}

    async def send(self, request: Callable[[], Awaitable[T]]) -> T:
        """What ``request()`` returns, called when the server has room for it; see :meth:`Pacer.send`."""
        return await self._connection()[1].send(request)

    async def complete(self, fields: Mapping[str, Any]) -> Answer:
        """Send one request for a chat completion.

        Raises:
            ProviderError: there is no whole answer in time.
        """
        ask = self._connection()[0].chat.completions.with_streaming_response.create
        try:
            # The extra body goes over the other fields and is sent as it is: the package looks through other fields.
            async with (
                asyncio.timeout(self._timeout),
                ask(model="", messages=[], extra_body=fields) as response,
            ):
                return Answer(response.status_code, response.headers, await _beginning(response.iter_bytes()))
        except openai.APIStatusError as refusal:
            return Answer(refusal.status_code, refusal.response.headers, refusal.body)  # type: ignore[arg-type]
        except TimeoutError:
            raise ProviderError(f"no answer from {self.url} within {self._timeout:g} s") from None
        except TRANSPORT_ERRORS as error:
            raise ProviderError(self._lost(error)) from None

    def _lost(self, error: BaseException) -> str:
        """What to say of a request without an answer. The package calls a refused connection a time-out, so the first
        cause decides."""
        while error.__cause__ is not None:
            error = error.__cause__
        if isinstance(error, TimeoutError):
            return f"no connection to {self.url} within {min(self._timeout, CONNECT_SECONDS):g} s"
        why = f"{type(error).__name__}: {error}"
        connected = isinstance(error, ConnectionResetError | BrokenPipeError) or not isinstance(error, OSError)
        return f"no whole answer from {self.url}: {why}" if connected else f"no connection to {self.url}: {why}"

    def _connection(self) -> tuple[openai.AsyncOpenAI, Pacer]:
        loop = asyncio.get_running_loop()
        if loop not in self._connections:
            self._connections = {known: kept for known, kept in self._connections.items() if not known.is_closed()}
            seconds = openai.Timeout(None, connect=min(self._timeout, CONNECT_SECONDS))
            client = openai.AsyncOpenAI(
                api_key=self._key or "none",
                base_url=self.url,
                timeout=seconds,
                max_retries=0,
                default_headers=self._headers,
                default_query=self._query,
                http_client=_http_client(),
            )
            self._connections[loop] = client, Pacer(self._patience)
        return self._connections[loop]

    async def aclose(self) -> None:
        """Close the connections of the running event loop; they are opened again when they are needed."""
        connection = self._connections.pop(asyncio.get_running_loop(), None)
        if connection is not None:
            await connection[0].close()


def _http_client() -> Any:
    """The fastest transport that is installed: over aiohttp a request costs half the processor time."""
    options: dict[str, Any] = {
        "limits": Limits(
            max_connections=MAX_CONNECTIONS,
            max_keepalive_connections=MAX_CONNECTIONS,
            keepalive_expiry=KEEPALIVE_SECONDS,
        ),
        "follow_redirects": False,  # a redirect would carry the key to another host
        "event_hooks": {"response": [_refuse]},
    }
    try:
        return openai.DefaultAioHttpClient(**options)
    except RuntimeError:  # the package's extra isn't installed
        return openai.DefaultAsyncHttpxClient(**options)


async def _refuse(response: Any) -> None:
    """Raise the error of a status before the package does, which would read the body to its end."""
    if not response.is_success:
        body = await _beginning(response.aiter_bytes())
        raise openai.APIStatusError(str(response.status_code), response=response, body=body)


async def _beginning(chunks: AsyncIterator[bytes]) -> bytes:
    """As much of an answer as gets into memory."""
    content = bytearray()
    async for chunk in chunks:
        content += chunk
        if len(content) > MAX_ANSWER_BYTES:
            break
    return bytes(content)


def proxy_for(url: str) -> str | None:
    """The proxy that the environment (``HTTPS_PROXY``, ``NO_PROXY``, ...) names for a URL.

    Raises:
        ValueError: it is of a kind that isn't supported, such as SOCKS.
    """
    parts = urlsplit(url)
    proxies = getproxies()
    name = parts.scheme if proxies.get(parts.scheme) else "all"
    proxy = proxies.get(name)
    if not proxy or proxy_bypass(parts.hostname or ""):
        return None
    if "://" in proxy and not proxy.startswith(("http://", "https://")):
        variable = f"{name}_proxy".upper()
        raise ValueError(f"{variable} has the form http://HOST:PORT, got {public_url(proxy)!r}; set another one")
    return proxy
