"""Show a page in the browser of this machine alone, and make it again while its runs are being played.

The server is on 127.0.0.1, which is not configurable. Requests that come under another host name are refused, so that a
site which points its own name at 127.0.0.1 (DNS rebinding) reads nothing.
"""

import hashlib
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

from benchmark.errors import StorageError, UsageError
from benchmark.runs.folder import EPISODES_NAME
from benchmark.runs.manifest import MANIFEST_NAME, is_final, read_manifest
from benchmark.score.results import expand_sources

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
    """A server of one page's text on 127.0.0.1; port 0 takes a free port. An OSError names the port.

    A page that names its version, in ``/?after=VERSION``, gets the newer one, or hears that there is none (204).
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, page: str, port: int = 0, version: str = "") -> None:
        self.show(page, version)
        try:
            super().__init__((ADDRESS, port), _Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise OSError(f"can't listen on {ADDRESS}:{port}: {reason}; --port 0 takes a free port") from error

    def show(self, page: str, version: str) -> None:
        self.state = (page.encode("utf-8"), version)  # both at once: requests come in other threads

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.server_port}/"


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD of the page; everything else is refused."""

    server: PageServer
    timeout = 10  # seconds; a client that sends nothing holds no thread
    server_version, sys_version = "textbench", ""

    def do_GET(self) -> None:
        self.wfile.write(self._headed())

    def do_HEAD(self) -> None:
        self._headed()

    def _headed(self) -> bytes:
        """Send the headers, the page's or an error's, and return what is to follow them."""
        port = self.server.server_port
        if self.headers.get("Host") not in (f"{ADDRESS}:{port}", f"localhost:{port}"):
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST, "this page is served to this machine only")
            return b""
        path, _, query = self.path.partition("?")
        if path != "/":
            self.send_error(HTTPStatus.NOT_FOUND, "the only page is /")
            return b""
        content, version = self.server.state
        known = version != "" and parse_qs(query).get("after") == [version]
        self.send_response(HTTPStatus.NO_CONTENT if known else HTTPStatus.OK)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        if not known:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        return b"" if known else content

    def log_message(self, format: str, *args: object) -> None:
        """Requests aren't logged: the terminal belongs to the command."""


def serve_page(
    pages: Iterator[tuple[str, str]],
    *,
    port: int = 0,
    open_browser: bool = True,
    announce: Callable[[str], None] = print,
) -> None:
    """Serve a page's text until Ctrl-C and ``announce`` its address once the server answers.

    ``pages`` are (text, version) of the page and of those that take its place, which are asked for in a thread.
    """
    page, version = next(pages)

    def go_on() -> None:
        for newer in pages:
            server.show(*newer)

    with PageServer(page, port, version) as server:
        threading.Thread(target=go_on, daemon=True).start()
        announce(server.url)
        if open_browser:
            webbrowser.open(server.url)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            return


LOOK_EVERY = 1.0  # seconds between two looks at the files
SHARE = 0.2
"""At most this share of the time goes into making pages, since the run needs the processor, too."""


def pages_of(
    sources: Sequence[str | Path],
    make: Callable[[str], tuple[str, bool]],
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[tuple[str, str]]:
    """Yield (text, version) of the page of these sources, and again after every change, until they are complete.

    ``make(version)`` makes the page and tells whether the sources are complete. A UsageError is raised for the first
    page alone; later ones are tried again.
    """
    version, complete = "", False
    while not complete:
        now = state_of(sources)
        took = 0.0
        if now != version:
            started = clock()
            try:
                page, complete = make(now)
            except (UsageError, StorageError):  # a file that is being written may be unreadable for a moment
                if not version:
                    raise
            else:
                version = now
                yield page, version
            took = clock() - started
        waited = 0.0
        while not complete and waited < max(LOOK_EVERY, took * (1 - SHARE) / SHARE):
            if waited and state_of(sources) != version:
                with suppress(UsageError):  # a manifest that is being written
                    if all(is_final(read_manifest(folder)) for folder in expand_sources(sources)):
                        break  # no source is being played any more: the last page comes at once
            sleep(LOOK_EVERY)
            waited += LOOK_EVERY


def state_of(sources: Sequence[str | Path]) -> str:
    """Return a name for what the sources hold now: another one after every episode that is written."""
    parts = []
    for folder in expand_sources(sources):
        for name in (MANIFEST_NAME, EPISODES_NAME):
            file = folder / name
            status = file.stat() if file.exists() else None
            parts.append((str(file), status and (status.st_size, status.st_mtime_ns)))
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
