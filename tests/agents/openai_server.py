"""A local server that speaks OpenAI's protocol, with limits and faults on demand. Standard library only.

As a process, from the root (the first line on standard output is the base URL; it serves until it is killed)::

    python -m tests.agents.openai_server --latency 0.2 --faults '{"429": 0.1, "malformed": 0.05}'

In a test, on a thread of its own::

    with OpenAIServer(latency=0.01, faults={"500": 0.2}) as server:
        client = AsyncOpenAI(base_url=server.base_url, api_key="anything")

Whether a request is hit by a fault is decided by a hash of the request's body and of how often that body was seen, so
it depends neither on order nor on concurrency. ``GET /v1/stats`` tells what was served.
"""

import argparse
import asyncio
import base64
import contextlib
import hashlib
import json
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import quote

from tests.agents import openai_routes

FINISHES = {
    "null-finish": None,
    "odd-finish": "because",
    "abort": "abort",
    "tool-call": "tool_calls",
    "content-filter": "content_filter",
}
PAGE = b"<html><body>Service Unavailable</body></html>"
ODD_BODIES: dict[str, bytes | dict[str, Any]] = {
    "html": PAGE,
    "malformed": b'{"id": "chatcmpl-local", "choices": [{"mess',
    "error-object": {"error": {"message": "upstream is down", "code": 502}},
}
RATE_LIMITS: dict[str, Callable[[float], str]] = {
    "429": lambda seconds: f"Retry-After: {seconds}\r\n",
    "503-wait": lambda seconds: f"Retry-After: {seconds}\r\n",
    "429-bare": lambda _: "",
}

MOVES = ("left", "down", "right", "up")


def random_move(request: Mapping[str, Any]) -> str:
    """An answer in the think template whose move depends on the request's text alone."""
    text = json.dumps(request.get("messages") or request.get("prompt") or request.get("input"), sort_keys=True)
    move = MOVES[hashlib.sha256(text.encode()).digest()[0] % len(MOVES)]
    return f"<think>Any move will do.</think><plan>{move}</plan><action>{move}</action>"


@dataclass(eq=False)
class OpenAIServer:
    """The server: start it with ``with`` (a thread) or :meth:`serve_forever` (this thread).

    Every parameter is a fault or a limit of real servers:

    * ``respond``: ``request body -> full answer``, to which ``stops`` and the token limit are applied; ``latency`` and
      ``slow`` in seconds; ``faults``: ``{name: probability}``, of at most 1 together; ``fault_attempts``: how often the
      same body can be hit before it always gets an answer. Names that are numbers are statuses; ``slow`` answers so
      many seconds late and ``trickle`` a byte at a time; ``drop`` closes the connection in the middle of the body, and
      ``reset`` resets it; ``echo`` repeats the request's credentials in every form.
    * ``most_in_flight``: beyond it a 429 names no time.
    * ``calls``: ``request body -> [(name, arguments)]``, the calls beside the answer, if tools are offered.
    * ``reasoning``: words before every answer, which count for the limit; ``parses_reasoning`` gives a leading
      ``<think>...</think>`` apart from the content, as vLLM does.
    * ``refused``: ``{parameter: what to use instead}`` of those that get a status 400; ``"default"`` refuses the value.
      ``only_route``: ``"responses"`` or ``"completions"``; ``models``: names in its list, which ``strict_names`` alone
      accepts; ``prompt_cache``: the share of each prompt that the usage calls cached; other ``api_key`` s get a 401.
    """

    latency: float = 0.0
    respond: Callable[[Mapping[str, Any]], str] = random_move
    calls: Callable[[Mapping[str, Any]], Sequence[tuple[str, Any]]] = lambda request: ()
    faults: Mapping[str, float] = field(default_factory=dict)
    fault_attempts: int | None = None
    api_key: str | None = None
    retry_after: float = 0.05
    slow: float = 2.0
    most_in_flight: int | None = None
    reasoning: int = 0
    parses_reasoning: bool = False
    refused: Mapping[str, str] = field(default_factory=dict)
    only_route: str | None = None
    models: Sequence[str] | None = ("local", "m", "org/model")
    strict_names: bool = False
    prompt_cache: float = 0.0
    stops: bool = True
    port: int = 0

    def __post_init__(self) -> None:
        self.requests: list[dict[str, Any]] = []  # the bodies of all chat requests
        self.model: str | None = None  # the names that answers bear, if not the requested one and none
        self.fingerprint: str | None = None
        self.headers: dict[str, str] = {}  # of the latest request
        self.served: Counter[str] = Counter()  # answers by kind: "ok" or the fault's name
        self.in_flight = self.peak = self.tokens_served = 0
        self._seen: Counter[bytes] = Counter()
        self._started = threading.Event()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> "OpenAIServer":
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._started.wait(10), "the test server didn't start within 10 seconds"
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def serve_forever(self, announce: Callable[[str], None] = print) -> None:
        """Serve in this thread until it is interrupted; ``announce`` gets the base URL once it is listening."""
        asyncio.run(self._serve(announce))

    async def _serve(self, announce: Callable[[str], None] = lambda url: None) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", self.port, backlog=2048)
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        announce(self.base_url)
        await self._stop.wait()
        server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _Connection(self, reader, writer).serve()

    def stats(self) -> dict[str, Any]:
        served = {"served": dict(self.served), "tokens": self.tokens_served}
        return {**served, "in_flight": self.in_flight, "peak": self.peak}

    def pick_fault(self, body: bytes) -> str | None:
        """The fault that hits this request, if any."""
        if not self.faults:
            return None
        attempt = self._seen[body]
        self._seen[body] += 1
        if self.fault_attempts is not None and attempt >= self.fault_attempts:
            return None
        digest = hashlib.sha256(b"0 %d " % attempt + body).digest()
        draw = int.from_bytes(digest[:8], "big") / 2**64
        for name, probability in self.faults.items():
            draw -= probability
            if draw < 0:
                return name
        return None

    def complete(self, request: Mapping[str, Any], fault: str | None, route: str = "chat") -> dict[str, Any]:
        """The body of a status 200 answer to a well-formed request."""
        text, finish_reason = self.respond(request), "stop"
        if fault == "garbage":
            text = "I would rather not say where I'm going."
        stops = (self.stops and request.get("stop")) or []
        for stop in [stops] if isinstance(stops, str) else stops:
            text = text.partition(stop)[0]  # servers cut the stop string out
        limit, words = openai_routes.limit_of(request), text.split(" ")
        reasoning = self.reasoning if limit is None else min(self.reasoning, limit)
        room = len(words) if limit is None else limit - reasoning
        if len(words) > room:
            words, finish_reason = words[:room], "length"
            text = " ".join(words)
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if self.parses_reasoning and text.startswith("<think>"):
            thought, _, said = text.removeprefix("<think>").partition("</think>")
            message |= {"content": said or None, "reasoning_content": thought}
        if request.get("tools") and (called := self.calls(request)):
            functions = [{"name": name, "arguments": json.dumps(told)} for name, told in called]
            told = [{"id": f"call_{n}", "type": "function", "function": one} for n, one in enumerate(functions)]
            message["tool_calls"], finish_reason = told, "tool_calls"
        if reasoning:
            message["reasoning_content"] = " ".join(["hm"] * reasoning)
        if fault == "huge":
            message["content"] = "left " * 2_000_000
        elif fault == "echo":
            message["content"] = json.dumps(credentials(self.headers)) + text
        elif fault in ("content-filter", "tool-call"):
            message["content"] = None
        if fault == "tool-call":
            called = {"name": "move", "arguments": '{"direction": "left"}'}
            message["tool_calls"] = [{"id": "call_0", "type": "function", "function": called}]
        prompt = openai_routes.words_of(request, route)
        usage: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": len(words) + reasoning}
        usage["total_tokens"] = sum(usage.values())
        self.tokens_served += usage["total_tokens"]
        if reasoning:
            usage["completion_tokens_details"] = {"reasoning_tokens": reasoning}
        if self.prompt_cache:
            usage["prompt_tokens_details"] = {"cached_tokens": int(prompt * self.prompt_cache)}
        choice = {"index": 0, "message": message, "logprobs": None}
        if fault != "no-finish":
            choice["finish_reason"] = FINISHES.get(fault or "", finish_reason)
        about = {"model": self.model or request.get("model", "local"), "system_fingerprint": self.fingerprint}
        body = openai_routes.BODIES[route](choice, usage, about)
        if fault == "no-usage":
            del body["usage"]
        return body | {"choices": []} if fault == "no-choices" else body


def credentials(headers: Mapping[str, str]) -> list[str]:
    """What a chatty server knows of whoever asks, in the forms in which it may say so."""
    given = [*headers.get("authorization", "").split(" "), *(v for k, v in headers.items() if k.startswith("x-"))]
    with contextlib.suppress(ValueError, IndexError):
        given.append(base64.b64decode(given[1], validate=True).decode())
    parts = [part for text in given for part in (text, *text.split(":"))]
    return [form for part in parts for form in (part, quote(part, safe=""), base64.b64encode(part.encode()).decode())]


class _Connection:
    """One keep-alive connection; bare streams because a web framework costs more per request than the client."""

    def __init__(self, server: OpenAIServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.server, self.reader, self.writer = server, reader, writer

    async def serve(self) -> None:
        """Answer one request after the other, until the connection is closed by either side."""
        with contextlib.suppress(asyncio.IncompleteReadError, asyncio.CancelledError, OSError):
            while not self.writer.is_closing():
                head = await self.reader.readuntil(b"\r\n\r\n")
                first, *lines = head.decode("latin-1").strip().split("\r\n")
                headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines)}
                body = await self.reader.readexactly(int(headers.get("content-length", 0)))
                await self.handle(first, headers, body)
        self.writer.close()

    async def handle(self, request_line: str, headers: dict[str, str], body: bytes) -> None:
        server = self.server
        server.headers = headers
        method, target, _ = request_line.split(" ")
        path = target.partition("?")[0]
        if path.endswith("/stats"):
            self.send(200, server.stats())
        elif server.api_key is not None and headers.get("authorization") != f"Bearer {server.api_key}":
            self.refuse_key(headers)
        elif path.endswith("/models") and server.models is not None:
            self.send(200, {"object": "list", "data": [{"id": name, "object": "model"} for name in server.models]})
        elif method == "POST" and (route := openai_routes.PATHS.get(path.partition("/v1")[2].rstrip("/"))):
            await self.generate(headers, body, route)
        else:
            self.error(404, f"no such path: {path}")

    async def generate(self, headers: dict[str, str], body: bytes, route: str) -> None:
        server = self.server
        try:
            request = json.loads(body)
            openai_routes.words_of(request, route)
        except (ValueError, KeyError, TypeError, AttributeError):
            self.error(400, f"not a request of {route}")
            return
        server.requests.append(request)
        if server.strict_names and request.get("model") not in (server.models or ("local", "m")):
            server.served["404"] += 1
            self.error(404, f"The model `{request.get('model')}` does not exist.", code=404)
        elif server.only_route not in (None, route):
            self.error(404, openai_routes.WRONG_ROUTE[server.only_route], param="model")
        elif error := openai_routes.refusal(request, server.refused):
            self.send(400, {"error": error})
        elif (fault := server.pick_fault(body)) == "hang":
            server.served["hang"] += 1
            await self.reader.read()  # to the end of the connection
        elif server.most_in_flight is not None and server.in_flight >= server.most_in_flight:
            server.served["limited"] += 1
            self.error(429, "Rate limit reached")
        else:
            server.in_flight += 1
            server.peak = max(server.peak, server.in_flight)
            await asyncio.sleep(server.latency + (server.slow if fault == "slow" else 0))
            server.in_flight -= 1
            server.served[fault or "ok"] += fault != "401"
            await self.answer(request, headers, fault, route)

    async def answer(self, request: Mapping[str, Any], headers: dict[str, str], fault: str | None, route: str) -> None:
        if fault == "401":
            self.refuse_key(headers)
        elif fault in RATE_LIMITS:
            extra = RATE_LIMITS[fault](self.server.retry_after)
            self.error(503 if fault == "503-wait" else 429, "Rate limit reached", extra, code="rate_limit_exceeded")
        elif fault == "no-quota":
            self.error(429, "You exceeded your quota", code="insufficient_quota")
        elif fault in ("400", "500"):
            self.error(int(fault), f"injected {fault}")
        elif fault == "503":
            self.send(503, PAGE, content_type="text/html")
        elif fault == "redirect":
            self.send(308, b"", "Location: http://elsewhere.example/v1\r\n")
        elif fault == "echo-error":
            self.error(400, f"I know you: {credentials(headers)}")
        elif fault in ODD_BODIES:
            self.send(200, ODD_BODIES[fault], content_type="text/html" if fault == "html" else "application/json")
        elif fault in ("drop", "reset", "trickle"):
            self.writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{")
            while fault == "trickle" and not self.writer.is_closing():
                await asyncio.sleep(self.server.slow)
                self.writer.write(b" ")
            if fault == "reset":
                linger = struct.pack("ii", 1, 0)  # closing then sends RST
                self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.writer.transport.abort()
            self.writer.close()
        else:
            self.send(200, self.server.complete(request, fault, route))

    def refuse_key(self, headers: dict[str, str]) -> None:
        self.server.served["401"] += 1
        said = f"Incorrect API key provided: {headers.get('authorization', '(none)')}"
        self.error(401, said, code="invalid_api_key")

    def error(self, status: int, message: str, extra: str = "", **about: Any) -> None:
        self.send(status, {"error": {"message": message, "type": "invalid_request_error", **about}}, extra)

    def send(self, status: int, body: dict[str, Any] | bytes, extra: str = "", *, content_type: str = "") -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        about = f"Content-Type: {content_type or 'application/json'}\r\nContent-Length: {len(data)}\r\n{extra}"
        self.writer.write(f"HTTP/1.1 {status} X\r\n{about}\r\n".encode() + data)


def main() -> None:
    parser = argparse.ArgumentParser(description="A local OpenAI-compatible server with faults on demand.")
    for option in fields(OpenAIServer):
        if option.name not in ("respond", "calls"):
            parser.add_argument(f"--{option.name.replace('_', '-')}", type=json.loads, default=argparse.SUPPRESS)
    with contextlib.suppress(KeyboardInterrupt):
        OpenAIServer(**vars(parser.parse_args())).serve_forever(lambda url: print(url, flush=True))


if __name__ == "__main__":
    main()
