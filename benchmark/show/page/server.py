"""Show a page in the browser of this machine, and to nobody else: a web server on 127.0.0.1 with one page.

The address is not configurable. Requests that come under another host name are refused, so that a site which points its
own name at 127.0.0.1 (DNS rebinding) reads nothing.
"""

import webbrowser
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ADDRESS = "127.0.0.1"
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class PageServer(ThreadingHTTPServer):
    """A server of one page's text on 127.0.0.1; port 0 takes a free port.

    Raises:
        OSError: the port is taken or may not be used; the message names it.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, page: str, port: int = 0) -> None:
        self.content = page.encode("utf-8")
        try:
            super().__init__((ADDRESS, port), _Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise OSError(f"can't listen on {ADDRESS}:{port}: {reason}; --port 0 takes a free port") from error

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.server_port}/"


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD of the page; everything else is refused."""

    server: PageServer
    timeout = 10  # seconds; a client that sends nothing holds no thread
    server_version, sys_version = "textbench", ""

    def do_GET(self) -> None:
        if self._accepted():
            self.wfile.write(self.server.content)

    def do_HEAD(self) -> None:
        self._accepted()

    def _accepted(self) -> bool:
        """Send the headers: the page's, or an error's."""
        port = self.server.server_port
        if self.headers.get("Host") not in (f"{ADDRESS}:{port}", f"localhost:{port}"):
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST, "this page is served to this machine only")
            return False
        if self.path.partition("?")[0] != "/":
            self.send_error(HTTPStatus.NOT_FOUND, "the only page is /")
            return False
        self.send_response(HTTPStatus.OK)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(self.server.content)))
        self.end_headers()
        return True

    def log_message(self, format: str, *args: object) -> None:
        """Requests aren't logged: the terminal belongs to the command."""


def serve_page(page: str, *, port: int = 0, open_browser: bool = True, announce: Callable[[str], None] = print) -> None:
    """Serve a page's text until Ctrl-C, as :class:`PageServer` does, and announce its address once the server answers.

    ``open_browser`` asks the desktop to show it; where there is none, nothing happens.
    """
    with PageServer(page, port) as server:
        announce(server.url)
        if open_browser:
            webbrowser.open(server.url)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            return
