"""A local server that answers every request with the same bytes: a server that holds to no protocol."""

import contextlib
import itertools
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class RawServer:
    """On threads of its own, between ``with`` and its end; ``answer`` makes the pieces of each answer."""

    def __init__(self, answer) -> None:
        self.asked, self.body = 0, b""
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                server.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                server.asked += 1
                self.close_connection = True
                with contextlib.suppress(OSError):
                    for piece in answer():
                        self.wfile.write(piece)

            do_GET = do_POST

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.block_on_close = False  # an endless answer ends with the client, or with the process
        self._server.daemon_threads = True
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> "RawServer":
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def answer(body: bytes, *headers: str, status: str = "200 OK", content_type: str = "application/json"):
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {content_type}", f"Content-Length: {len(body)}", *headers]
    return lambda: ["\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1", "replace") + body]


def endless(head: bytes, piece: bytes):
    return lambda: itertools.chain([head], itertools.repeat(piece))
