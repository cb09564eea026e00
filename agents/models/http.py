"""One server over HTTP: bodies are posted to it, and its answers come back within a time and up to a size."""

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from agents.models.chat_answers import MAX_ANSWER_BYTES, ProviderError
from agents.models.pacing import Pacer
from agents.redaction import public_url

T = TypeVar("T")

KEEPALIVE_SECONDS = 4.0  # under the 5 s after which uvicorn, and so most local servers, drops an idle connection
CONNECT_SECONDS = 10.0


class Answer(NamedTuple):
    """What a server said.

    Attributes:
        status: the HTTP status.
        headers: by name, in any case.
        body: at most :data:`~agents.models.chat_answers.MAX_ANSWER_BYTES` of it.
        whole: whether that is all of it.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    whole: bool


class Server:
    """A server, with its own connections for each event loop: connections belong to the loop that opened them.

    Args:
        base_url: the address, with user information and query where it has any.
        headers: of every request.
        timeout: seconds for one request, from connecting to the last byte of the answer.
        patience: as of :class:`~agents.models.pacing.Pacer`.

    Raises:
        ValueError: the environment names a proxy of a kind that isn't supported, such as SOCKS.
    """

    def __init__(self, base_url: str, headers: Mapping[str, str], timeout: float, patience: float) -> None:
        parts = urlsplit(base_url)
        self.url = public_url(base_url)
        self.proxy = proxy_for(self.url)
        self._query = f"?{parts.query}" if parts.query else ""
        self._headers = {"Content-Type": "application/json"}
        if userinfo := unquote(parts.netloc.rpartition("@")[0]):
            self._headers["Authorization"] = f"Basic {base64.b64encode(userinfo.encode()).decode()}"
        self._headers |= headers
        self._timeout, self._patience = timeout, patience
        self._connections: dict[asyncio.AbstractEventLoop, tuple[aiohttp.ClientSession, Pacer]] = {}

    async def send(self, request: Callable[[], Awaitable[T]]) -> T:
        """What ``request()`` returns, called when the server has room for it; see :meth:`Pacer.send`."""
        return await self._connection()[1].send(request)

    async def post(self, path: str, body: Mapping[str, Any]) -> Answer:
        """Post a JSON body.

        Raises:
            ProviderError: there is no whole answer in time.
        """
        session, _ = self._connection()
        target = f"{self.url.rstrip('/')}{path}{self._query}"
        try:
            # A redirect isn't followed: it would carry the key to another host.
            async with session.post(target, json=body, allow_redirects=False) as response:
                content = bytearray()
                async for chunk in response.content.iter_any():
                    content += chunk
                    if len(content) > MAX_ANSWER_BYTES:  # the rest never gets into memory
                        break
                whole = len(content) <= MAX_ANSWER_BYTES
                return Answer(response.status, response.headers, bytes(content[:MAX_ANSWER_BYTES]), whole)
        except aiohttp.ConnectionTimeoutError:
            seconds = min(self._timeout, CONNECT_SECONDS)
            raise ProviderError(f"no connection to {self.url} within {seconds:g} s") from None
        except TimeoutError:
            raise ProviderError(f"no answer from {self.url} within {self._timeout:g} s") from None
        except aiohttp.ClientConnectorError as error:
            cause = error.os_error
            raise ProviderError(f"no connection to {self.url}: {type(cause).__name__}: {cause}") from None
        except (aiohttp.ClientError, OSError) as error:
            broken = isinstance(error, aiohttp.ClientPayloadError)
            why = "the connection was lost in its middle" if broken else f"{type(error).__name__}: {error}"
            raise ProviderError(f"no whole answer from {self.url}: {why}") from None

    def _connection(self) -> tuple[aiohttp.ClientSession, Pacer]:
        loop = asyncio.get_running_loop()
        if loop not in self._connections:
            self._connections = {known: kept for known, kept in self._connections.items() if not known.is_closed()}
            session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=self._headers,
                proxy=self.proxy,
                timeout=aiohttp.ClientTimeout(self._timeout, sock_connect=min(self._timeout, CONNECT_SECONDS)),
            )
            self._connections[loop] = session, Pacer(self._patience)
        return self._connections[loop]

    async def aclose(self) -> None:
        """Close the connections of the running event loop; they are opened again when they are needed."""
        connection = self._connections.pop(asyncio.get_running_loop(), None)
        if connection is not None:
            await connection[0].close()


def proxy_for(url: str) -> str | None:
    """The proxy that the environment (``HTTPS_PROXY``, ``NO_PROXY``, ...) names for a URL.

    Raises:
        ValueError: it is of a kind that isn't supported.
    """
    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme)
    if not proxy or proxy_bypass(parts.hostname or ""):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not proxy.startswith(("http://", "https://")):
        variable = f"{parts.scheme}_proxy".upper()
        raise ValueError(f"{variable} has the form http://HOST:PORT, got {public_url(proxy)!r}; set another one")
    return proxy
