"""Who is let in at a served game: hosts, origins, tokens, sizes and silence, on every route that the server has."""

import asyncio
import json
import socket
import tempfile
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openenv", reason="needs OpenEnv: pip install -e '.[openenv]', or .ci/adapters openenv")

import requests
from requests.exceptions import ChunkedEncodingError
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tests.integrations.openenv.serving import a_process, play, served
from textbench.integrations.openenv import ServedGame, TextbenchEnv, server
from textbench.integrations.openenv.gate import MOST_BYTES, Gate
from textgames import SCENARIOS

pytestmark = pytest.mark.adapters

GAME = ServedGame(SCENARIOS["frozen-lake"])
TOKEN = "a secret of some length"
ROUTES = [
    *("GET /", "GET /health", "GET /docs", "GET /openapi.json", "GET /metadata", "GET /schema", "GET /state"),
    *("POST /reset", "POST /step", "POST /mcp", "GET /web/", "GET /web/config", "POST /web/reset", "POST /web/step"),
    *("GET /web/theme.css", "POST /web/gradio_api/queue/join", "POST /web/gradio_api/upload", "GET /nowhere"),
    *("GET /frozen-lake/splits", "POST /frozen-lake/task"),
]


@pytest.fixture(scope="module")
def url():
    with a_process("frozen-lake") as address:
        yield address


@pytest.fixture(scope="module")
def guarded():
    with a_process("frozen-lake", token=TOKEN) as address:
        yield address


def ask(url: str, route: str, **headers: str) -> requests.Response:
    method, path = route.split()
    body = "{}" if method == "POST" else None
    sent = {"Content-Type": "application/json", **headers}
    return requests.request(method, url + path, data=body, headers=sent, allow_redirects=False, timeout=30)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:8000"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Host": "localhost@evil.example"}, 421),
        ({"Host": ""}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),  # another server of this machine
        ({"Origin": "http://localhost"}, 403),
    ],
)
def test_other_hosts_and_other_pages_get_no_answer_on_any_route(url, route, headers, status):
    answered = ask(url, route, **headers)
    assert answered.status_code == status
    assert list(answered.json()) == ["detail"]


@pytest.mark.parametrize("path", ["/ws", "/mcp", "/ws/ui"])
def test_nor_on_a_websocket(url, path):
    for origin in ("http://evil.example", "http://127.0.0.1:1"):
        with pytest.raises(InvalidStatus, match="403"), connect(f"ws{url[4:]}{path}", origin=origin):
            pass
    host, port = url[7:].split(":")
    opened = socket.create_connection((host, int(port)))
    with pytest.raises(InvalidStatus, match="403"), connect(f"ws://evil.example:{port}{path}", sock=opened):
        pass
    with connect(f"ws{url[4:]}{path}", origin=url):  # its own page
        pass


@pytest.mark.parametrize(
    ("bound", "headers", "status"),
    [
        ("0.0.0.0", {"host": "192.0.2.7:8000"}, 200),
        ("0.0.0.0", {"host": "[2001:db8::1]:8000"}, 200),
        ("0.0.0.0", {"host": "evil.example"}, 421),
        ("192.0.2.7", {"host": "192.0.2.7:8000"}, 200),
        ("192.0.2.7", {"host": "192.0.2.8:8000"}, 421),
        ("127.0.0.1", {"host": "192.0.2.7"}, 421),
        ("127.0.0.1", {"host": "games.example.com:8000", "origin": "https://games.example.com"}, 200),
        ("127.0.0.1", {"host": "a.lab.example", "origin": "https://b.lab.example"}, 200),
        ("127.0.0.1", {"host": "evil-lab.example"}, 421),
        ("127.0.0.1", {"host": "a.lab.example", "origin": "https://evil.example"}, 403),
    ],
)
def test_the_hosts_that_are_listened_on_or_allowed(bound, headers, status):
    statuses = []

    async def behind(scope: Any, receive: Any, send: Any) -> None:
        statuses.append(200)

    async def send(message: Any) -> None:
        statuses.append(message.get("status"))

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    sent = [(name.encode(), value.encode()) for name, value in headers.items()]
    gate = Gate(behind, bound, ("games.example.com", "*.lab.example"))
    asyncio.run(gate({"type": "http", "path": "/", "headers": sent}, receive, send))
    assert statuses[0] == status


@pytest.mark.parametrize("route", [route for route in ROUTES if route != "GET /health"])
def test_without_the_token_there_is_no_answer(guarded, route):
    basic = b64encode(b"me:wrong").decode()
    for given in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}, {"Authorization": f"Basic {basic}"}):
        assert ask(guarded, route, **given).status_code == 401
    assert ask(guarded, route, Authorization="Basic é".encode().decode("latin-1")).status_code == 401
    assert ask(guarded, route, Authorization=f"Bearer {TOKEN}").status_code not in (401, 403)


def test_the_token_opens_the_page_and_the_websocket(guarded):
    assert requests.get(f"{guarded}/web/", auth=("me", TOKEN), timeout=60).status_code == 200
    assert requests.get(f"{guarded}/health", timeout=60).status_code == 200
    with pytest.raises(ConnectionError), TextbenchEnv(guarded).sync() as env:
        env.reset(seed=3)
    with TextbenchEnv(guarded, headers={"Authorization": f"Bearer {TOKEN}"}).sync() as env:
        assert env.reset(seed=3).observation.text


@pytest.mark.parametrize(
    "path",
    [
        *("upload", "upload?upload_id=x", "/upload", "Upload", "./upload", "%75pload", "stream/x", "process_recording"),
        *("file=/etc/passwd", "file/x", "proxy=http://127.0.0.1", "component_server", "run/predict", "call/x"),
    ],
)
def test_nothing_can_be_uploaded_and_no_file_is_served(url, path):
    before = sum(file.stat().st_size for file in Path(tempfile.gettempdir(), "gradio").rglob("*") if file.is_file())
    for place in ("web/gradio_api", "web", "gradio_api"):
        files = {"files": ("x.bin", bytes(900_000))}
        assert requests.post(f"{url}/{place}/{path}", files=files, timeout=30).status_code in (404, 405)
        assert requests.get(f"{url}/{place}/{path}", timeout=30).status_code in (404, 405)
    after = sum(file.stat().st_size for file in Path(tempfile.gettempdir(), "gradio").rglob("*") if file.is_file())
    assert after == before


def test_a_body_has_a_limit(url):
    headers = {"Content-Type": "application/json"}
    assert requests.post(f"{url}/reset", data=b" " * (MOST_BYTES + 1), headers=headers, timeout=30).status_code == 413

    def endless() -> Iterator[bytes]:
        while True:
            yield b" " * 65_536

    cut_off = (requests.ConnectionError, ChunkedEncodingError)  # answered before all is sent: before or in the answer
    with suppress(*cut_off):
        assert requests.post(f"{url}/reset", data=endless(), headers=headers, timeout=30).status_code == 413
    with connect(f"ws{url[4:]}/ws") as opened:
        opened.send(json.dumps({"type": "step", "data": {"message": "x" * (MOST_BYTES + 1)}}))
        with pytest.raises(ConnectionClosed):
            opened.recv(timeout=30)
    assert play(url, seed=3)[1].done  # it goes on


def seconds_open(url: str, *pieces: bytes, pause: float = 0.0) -> float:
    """How long a connection stays open that says this and then nothing more."""
    host, port = url[7:].split(":")
    started = time.monotonic()
    with socket.create_connection((host, int(port)), timeout=20) as opened:
        try:
            for piece in pieces:
                opened.sendall(piece)
                time.sleep(pause)
            while opened.recv(65_536):
                pass
        except ConnectionError:
            pass
    return time.monotonic() - started


def test_sockets_that_say_nothing_are_closed(monkeypatch):
    monkeypatch.setattr(server, "IDLE_SOCKET_SECONDS", 1.0)
    monkeypatch.setattr("textbench.integrations.openenv.gate.BODY_SECONDS", 1.0)
    head = b"POST /reset HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n"
    with served(GAME, idle=1.0) as url:
        assert seconds_open(url) < 6
        assert seconds_open(url, b"GET /health HT") < 6
        assert seconds_open(url, *[bytes([letter]) for letter in head], pause=0.1) < 8  # a letter now and then
        assert seconds_open(url, head + b"\r\n{") < 6
        assert seconds_open(url, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /heal") < 8
        with connect(f"ws{url[4:]}/ws") as opened:
            started = time.monotonic()
            with suppress(ConnectionClosed):
                while True:
                    opened.recv(timeout=20)
            assert time.monotonic() - started < 8
        assert play(url, seed=3)[1].done
