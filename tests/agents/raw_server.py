"""A local server that answers every request with the same bytes: a server that holds to no protocol."""

import asyncio
import contextlib
import threading
from collections.abc import Iterable, Iterator


class RawServer:
    """On a thread of its own, between ``with`` and its end.

    Args:
        answer: makes the pieces of an answer; it may never end.
    """

    def __init__(self, answer) -> None:
        self.answer, self.asked, self.sent = answer, 0, 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> "RawServer":
        started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(started)), daemon=True)
        self._thread.start()
        assert started.wait(10)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _serve(self, started: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._handle, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        await self._stop.wait()
        server.close()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = await reader.readuntil(b"\r\n\r\n")
            lengths = [
                line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
            ]
            await reader.readexactly(int(lengths[0]) if lengths else 0)
            self.asked += 1
            for piece in self.answer():
                writer.write(piece)
                self.sent += len(piece)
                await writer.drain()
                if self._stop.is_set():
                    break
        writer.close()


def answer(body: bytes, *headers: str, status: str = "200 OK", content_type: str = "application/json"):
    """A whole answer of one piece."""
    lines = [
        f"HTTP/1.1 {status}",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *headers,
    ]
    return lambda: ["\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body]


def endless(head: bytes, piece: bytes):
    """An answer that never ends."""

    def pieces() -> Iterable[bytes]:
        yield head
        yield from _for_ever(piece)

    return pieces


def _for_ever(piece: bytes) -> Iterator[bytes]:
    while True:
        yield piece
