"""Limits on clients of a served game, checked for every request and every WebSocket before any route sees it.

A page of another site that is open in a browser on this machine can send requests here, and read the answers if its
name has been made to point here (DNS rebinding). So the ``Host`` of a request must be a name that this server goes by,
its ``Origin``, if a browser sends one, must be this server, and if there is a token it must be given.
"""

import asyncio
import hmac
import json
import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from contextlib import suppress
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

MOST_BYTES = 2**20  # of the body of a request and of one message of a client: a response is text
BODY_SECONDS = 30.0  # until a request's body is there
IDLE_SECONDS = 3600.0  # that a client may say nothing in its session: a trainer's update may take long
LOOPBACK = ("localhost", "127.0.0.1", "::1")
EVERYWHERE = ("0.0.0.0", "::", "")

PAGE = re.compile(
    r"/web(/(|config/?|metadata|reset|step|state|theme\.css|favicon\.ico|robots\.txt|manifest\.json|pwa_icon(/\w+)?"
    r"|(static|assets|svelte)/.*"
    r"|gradio_api/(info/?|app_id/?|user/?|token/?|login_check/?|theme\.css|startup-events|queue/(join|data)|reset/?"
    r"|cancel|heartbeat/\w+)))?"
)
"""What the page at ``/web`` needs of its library, which also takes uploads, fetches addresses and serves files."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


class Refused(Exception):  # noqa: N818 - an answer, with a status
    """A request that isn't let in."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Gate:
    """An ASGI application around another one.

    Args:
        app: what is behind it.
        bound: the host that the server listens on. If it listens everywhere (``0.0.0.0``), any address in numbers
            is its own: a name can be made to point anywhere, an address can't.
        allow: further names that it goes by, at a proxy or in a network; ``*.example.com`` are all below. Those of
            this machine's loopback always count.
        token: the secret that every request but ``/health`` has to bring, as a bearer's token, or as the password of
            basic authorisation, which browsers ask for; ``None`` lets everybody in.
        idle: seconds after which a WebSocket on which nothing is said is closed; 0 never.
    """

    def __init__(
        self,
        app: Application,
        bound: str = LOOPBACK[0],
        allow: Collection[str] = (),
        token: str | None = None,
        idle: float = IDLE_SECONDS,
    ) -> None:
        self.app, self.token, self.idle = app, token, idle
        self.bound, self.allowed = bound.lower(), tuple(host.strip("[]").lower() for host in allow)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        try:
            try:
                self.check(scope)
            finally:  # the body is read to its end, or a client that is still sending wouldn't see the answer
                if scope["type"] == "http":
                    receive = await _whole_body(receive)
        except Refused as refusal:
            await _refuse(scope, send, refusal)
            return
        if scope["type"] == "websocket" and self.idle:
            await self._until_idle(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _until_idle(self, scope: Message, receive: Receive, send: Send) -> None:
        """Hand on the messages of a WebSocket until it has been silent for so long: then its client counts as gone."""
        gone = {"type": "websocket.disconnect", "code": 1001, "reason": f"idle for {self.idle:g} s"}
        idle = False

        async def received() -> Message:
            nonlocal idle
            try:
                async with asyncio.timeout(self.idle):
                    return await receive()
            except TimeoutError:
                idle = True
                return gone

        try:
            await self.app(scope, received, send)
        finally:
            if idle:
                with suppress(Exception):  # it may be closed already
                    await send({**gone, "type": "websocket.close"})

    def check(self, scope: Message) -> None:
        """Raise :class:`Refused` if a request isn't let in, by its path and headers."""
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        given = headers.get("host", [])
        if len(given) != 1 or not self.is_ours(_name_of(f"//{given[0]}")):
            shown = repr(given[0][:80]) if given else "none"
            raise Refused(
                421, f"this server isn't known by the host {shown}; textbench serve --allow-host NAME adds a name"
            )
        for origin in headers.get("origin", []):
            if not self._is_own_page(origin, given[0]):
                raise Refused(403, f"requests from pages of {origin[:80]!r} aren't answered")
        path = scope["path"]
        if self.token is not None and path != "/health" and not self._has_token(headers.get("authorization", [])):
            raise Refused(401, "this server needs a token: Authorization: Bearer TOKEN")
        if path.startswith("/web") and not PAGE.fullmatch(path):
            raise Refused(404, "Not Found")

    def is_ours(self, host: str) -> bool:
        """Return whether the server goes by this name or address."""
        if host in LOOPBACK or host == self.bound or self._is_allowed(host):
            return True
        try:
            return self.bound in EVERYWHERE and bool(ip_address(host))
        except ValueError:  # a name
            return False

    def _is_allowed(self, host: str) -> bool:
        below = [name[1:] for name in self.allowed if name.startswith("*.")]
        return bool(host) and (host in self.allowed or any(host.endswith(end) for end in below))

    def _is_own_page(self, origin: str, asked: str) -> bool:
        """Return whether a page is this server's, by the host and port that was asked, or a proxy's by its name."""
        if not origin.startswith(("http://", "https://")):  # "null", an extension
            return False
        return origin.partition("://")[2].lower() == asked.lower() or self._is_allowed(_name_of(origin))

    def _has_token(self, given: list[str]) -> bool:
        assert self.token is not None
        kind, _, secret = (given[0] if len(given) == 1 else "").partition(" ")
        if kind.lower() == "basic":
            try:
                secret = b64decode(secret, validate=True).decode().partition(":")[2]
            except (NotBase64, ValueError):
                return False
        elif kind.lower() != "bearer":
            return False
        return hmac.compare_digest(secret.encode(), self.token.encode())  # takes as long wherever they differ


def _name_of(url: str) -> str:
    """Return the host of an address in small letters, or nothing if it isn't an address of a host alone."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return ""
    odd = parts.path or parts.query or parts.fragment or parts.username is not None
    return "" if odd else (parts.hostname or "").rstrip(".")


async def _whole_body(receive: Receive) -> Receive:
    """Read a request's body, so much of it and so long, and hand it on."""
    body, more = bytearray(), True
    messages: list[Message] = []
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while more:
                message = await receive()
                if message["type"] != "http.request":  # the client has gone
                    messages = [message]
                    break
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > MOST_BYTES:
                    raise Refused(413, f"a request's body has at most {MOST_BYTES:,} bytes")
    except TimeoutError:
        raise Refused(408, f"the request's body wasn't there within {BODY_SECONDS:g} s") from None
    messages.insert(0, {"type": "http.request", "body": bytes(body), "more_body": False})

    async def handed_on() -> Message:
        return messages.pop(0) if messages else await receive()

    return handed_on


async def _refuse(scope: Message, send: Send, refusal: Refused) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": str(refusal)[:100]})  # before the handshake: 403
        return
    body = json.dumps({"detail": str(refusal)}).encode()
    length = str(len(body)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", length), (b"connection", b"close")]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b'Basic realm="textbench"'))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
