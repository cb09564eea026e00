"""One server, asked with the ``openai`` package; a request's time and an answer's size are bounded here."""

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from functools import cache
from importlib import import_module
from ssl import SSLContext
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit

import openai

from agents.common.redaction import public_url
from agents.models.served.answers import MAX_ANSWER_BYTES, NO_ANSWER, ProviderError
from agents.models.served.pacing import PerLoop

CONNECT_SECONDS = 10.0
# the idle time is under the 5 s after which uvicorn, and so most local servers, drops a connection
LIMITS = type(openai.DEFAULT_CONNECTION_LIMITS)(
    max_connections=4096, max_keepalive_connections=4096, keepalive_expiry=4.0
)
httpx = import_module(type(LIMITS).__module__.partition(".")[0])  # the package's transport: httpx2 since openai 3
ERRORS: tuple[type[Exception], ...] = (openai.APIError, httpx.HTTPError, OSError)
with suppress(ImportError):  # over aiohttp, if it is installed, a request costs half the processor time
    ERRORS += (import_module("aiohttp").ClientError,)


class Server:
    """A server, with its own connections for each event loop. The ``key`` is the bearer's token, unless ``base_url``
    has user information; ``timeout`` are the seconds from connecting to the last byte of an answer."""

    def __init__(self, base_url: str, key: str, headers: Mapping[str, str], timeout: float) -> None:
        parts = urlsplit(base_url)
        self.url = public_url(base_url)
        self._key, self._query = key, dict(parse_qsl(parts.query, keep_blank_values=True))
        self._headers = dict(headers)
        if userinfo := unquote(parts.netloc.rpartition("@")[0]):
            self._headers = {"Authorization": f"Basic {base64.b64encode(userinfo.encode()).decode()}"} | self._headers
        self._timeout = timeout
        self._clients: PerLoop[openai.AsyncOpenAI] = PerLoop()

    async def complete(self, path: str, fields: Mapping[str, Any]) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers and body of an answer; a ProviderError if there is no whole one in time."""
        client = self._clients.get(self._connect)
        # the extra body replaces the other fields, and the package doesn't walk through it
        if path == "/responses":
            asked: AbstractAsyncContextManager[Any] = client.responses.with_streaming_response.create(extra_body=fields)
        elif path == "/completions":
            asked = client.completions.with_streaming_response.create(model="", prompt="", extra_body=fields)
        else:
            asked = client.chat.completions.with_streaming_response.create(model="", messages=[], extra_body=fields)
        return await self._answer(asked)

    async def models(self) -> tuple[int, bytes]:
        """Return the status and the body of the server's list of models; the errors are those of :meth:`complete`."""
        client = self._clients.get(self._connect)
        status, _, body = await self._answer(client.models.with_streaming_response.list())
        return status, body

    async def _answer(self, asked: AbstractAsyncContextManager[Any]) -> tuple[int, Mapping[str, str], bytes]:
        try:
            async with asyncio.timeout(self._timeout), asked as response:
                return response.status_code, response.headers, await _beginning(response.iter_bytes())
        except TimeoutError:
            raise ProviderError(f"{NO_ANSWER} {self.url} within {self._timeout:g} s", overloaded=True) from None
        except ERRORS as error:
            cause: BaseException = error
            while cause.__cause__ is not None:  # the package calls even a refused connection a time-out
                cause = cause.__cause__
            if isinstance(cause, openai.APIStatusError):
                return cause.status_code, cause.response.headers, cast(bytes, cause.body)
            if isinstance(cause, TimeoutError):
                seconds = min(self._timeout, CONNECT_SECONDS)
                raise ProviderError(f"no connection to {self.url} within {seconds:g} s") from None
            connected = isinstance(cause, ConnectionResetError | BrokenPipeError) or not isinstance(cause, OSError)
            what = "whole answer from" if connected else "connection to"
            raise ProviderError(f"no {what} {self.url}: {type(cause).__name__}: {cause}") from None

    def _connect(self) -> openai.AsyncOpenAI:
        options: Any = {
            "limits": LIMITS,
            "follow_redirects": False,  # a redirect would carry the key to another host
            "event_hooks": {"response": [_refuse]},
            "verify": _certificates(),
        }
        try:
            transport = openai.DefaultAioHttpClient(**options)
        except RuntimeError:  # the package's extra isn't installed
            transport = openai.DefaultAsyncHttpxClient(**options)
        return openai.AsyncOpenAI(
            api_key=self._key or "none",
            base_url=self.url,
            timeout=openai.Timeout(None, connect=min(self._timeout, CONNECT_SECONDS)),
            max_retries=0,
            default_headers=self._headers,
            default_query=self._query,
            http_client=transport,
        )

    async def aclose(self) -> None:
        if (client := self._clients.pop()) is not None:
            await client.close()


@cache  # reading the authorities' certificates is nearly all that a client costs
def _certificates() -> SSLContext:
    context: SSLContext = httpx.create_ssl_context()
    return context


async def _refuse(response: Any) -> None:
    """Raise the error of a status before the package does, which would read the body to its end."""
    if not response.is_success:
        body = await _beginning(response.aiter_bytes())
        raise openai.APIStatusError(str(response.status_code), response=response, body=body)


async def _beginning(chunks: AsyncIterator[bytes]) -> bytes:
    content = bytearray()
    async for chunk in chunks:
        content += chunk
        if len(content) > MAX_ANSWER_BYTES:  # the rest never gets into memory
            break
    return bytes(content)
