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
import inspect
import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from urllib.parse import quote

from tests.agents import openai_routes

FAULTS = (
    *("400", "401", "429", "429-ms", "429-date", "429-bare", "no-quota", "500", "503", "503-wait", "redirect", "slow"),
    *("hang", "trickle", "drop", "reset", "huge", "empty", "html", "malformed", "wrong-type", "wrong-shape"),
    *("error-object", "no-choices", "no-usage", "no-finish", "null-finish", "odd-finish", "abort", "no-resources"),
    *("tool-call", "null-content", "refusal", "content-filter", "cut", "garbage", "echo", "echo-error", "old-limit"),
)
"""Numbers are statuses, with a time to wait as :data:`RATE_LIMITS` has it; 503 comes as a web page.

``slow`` answers ``slow`` seconds late and ``trickle`` a byte at a time; ``drop`` closes the connection in the middle of
the body, and ``reset`` resets it. ``wrong-type``, a completion that is called text/html, is no fault. ``echo`` repeats
the request's credentials in every form, and ``old-limit`` refuses ``max_tokens``.
"""

FINISHES = {
    "null-finish": None,
    "odd-finish": "because",
    "abort": "abort",
    "no-resources": "insufficient_system_resource",
    "tool-call": "tool_calls",
    "content-filter": "content_filter",
    "cut": "length",
}
PAGE = b"<html><body>Service Unavailable</body></html>"
ODD_BODIES: dict[str, bytes | dict[str, Any]] = {
    "empty": b"",
    "html": PAGE,
    "malformed": b'{"id": "chatcmpl-local", "choices": [{"mess',
    "wrong-shape": {"choices": [{"text": "left"}], "usage": "none"},
    "error-object": {"error": {"message": "upstream is down", "code": 502}},
}

RATE_LIMITS: dict[str, Callable[[float], str]] = {
    "429": lambda seconds: f"Retry-After: {seconds}\r\n",
    "503-wait": lambda seconds: f"Retry-After: {seconds}\r\n",
    "429-ms": lambda seconds: f"retry-after-ms: {seconds * 1000}\r\n",
    "429-date": lambda _: f"Retry-After: {format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)}\r\n",
    "429-bare": lambda _: "",
}

MOVES = ("left", "down", "right", "up")


def random_move(request: Mapping[str, Any]) -> str:
    """An answer in the think template whose move depends on the request's text alone."""
    text = json.dumps(request.get("messages") or request.get("prompt") or request.get("input"), sort_keys=True)
    move = MOVES[hashlib.sha256(text.encode()).digest()[0] % len(MOVES)]
    return f"<think>Any move will do.</think><plan>{move}</plan><action>{move}</action>"


class OpenAIServer:
    """The server: start it with ``with`` (a thread) or :meth:`serve_forever` (this thread).

    Every parameter is a fault or a limit of real servers:

    * ``respond``: ``request body -> full answer``, to which ``stops`` and the token limit are applied; ``latency`` and
      ``slow`` in seconds; ``faults``: ``{name as in FAULTS: probability}``, of at most 1 together; ``fault_attempts``:
      how often the same body can be hit before it always gets an answer.
    * ``requests_per_minute``: a bucket that holds ``burst`` requests; what goes beyond gets a 429 with a time. Beyond
      ``most_in_flight`` a 429 names no time, and beyond ``capacity`` requests wait for their turn.
    * ``calls``: ``request body -> [(name, arguments)]``, the calls beside the answer, if tools are offered.
    * ``reasoning``: words before every answer, which count for the limit; ``parses_reasoning`` gives a leading
      ``<think>...</think>`` apart from the content, as vLLM does.
    * ``refused``: ``{parameter: what to use instead}`` of those that get a status 400; ``"default"`` refuses the value.
      ``only_route``: ``"responses"`` or ``"completions"``; ``models``: names in its list, which ``strict_names`` alone
      accepts; ``prompt_cache``: the share of each prompt that the usage calls cached; other ``api_key`` s get a 401.
    """

    def __init__(
        self,
        *,
        latency: float = 0.0,
        respond: Callable[[Mapping[str, Any]], str] = random_move,
        calls: Callable[[Mapping[str, Any]], Sequence[tuple[str, Any]]] = lambda request: (),
        faults: Mapping[str, float] | None = None,
        fault_attempts: int | None = None,
        api_key: str | None = None,
        retry_after: float = 0.05,
        slow: float = 2.0,
        requests_per_minute: float | None = None,
        burst: int = 1,
        most_in_flight: int | None = None,
        capacity: int | None = None,
        reasoning: int = 0,
        parses_reasoning: bool = False,
        refused: Mapping[str, str] | None = None,
        only_route: str | None = None,
        models: Sequence[str] | None = ("local", "m", "org/model"),
        strict_names: bool = False,
        prompt_cache: float = 0.0,
        stops: bool = True,
        seed: int = 0,
        port: int = 0,
    ) -> None:
        self.latency, self.respond, self.calls, self.faults = latency, respond, calls, dict(faults or {})
        self.fault_attempts, self.api_key, self.retry_after, self.slow = fault_attempts, api_key, retry_after, slow
        self.most_in_flight, self.capacity = most_in_flight, capacity
        self.rate, self.burst = (requests_per_minute or 0) / 60, burst
        self._left, self._filled_at = float(burst), time.monotonic()  # requests in the bucket
        self.reasoning, self.refused, self.only_route = reasoning, dict(refused or {}), only_route
        self.parses_reasoning = parses_reasoning
        self.prompt_cache, self.models, self.strict_names, self.stops = prompt_cache, models, strict_names, stops
        self.seed, self.port = seed, port
        unknown = [name for name in self.faults if name not in FAULTS]
        if unknown or sum(self.faults.values()) > 1 + 1e-9:
            raise ValueError(f"faults are {', '.join(FAULTS)}, adding up to at most 1; got {self.faults}")
        self.requests: list[dict[str, Any]] = []
        """The bodies of all chat requests."""
        self.model: str | None = None
        self.fingerprint: str | None = None
        """The names that answers bear, where they aren't the requested one and none."""
        self.headers: dict[str, str] = {}
        """The headers of the latest request."""
        self.served: Counter[str] = Counter()
        """Answers by kind: ``"ok"`` or the fault's name."""
        self.in_flight = self.peak = self.tokens_served = 0
        self._free_at: list[float] = []  # when each place of the capacity is free again
        self._seen: Counter[bytes] = Counter()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._started = threading.Event()
        self._connections: set[asyncio.Transport] = set()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    # ---------------------------------------------------------------- running

    def __enter__(self) -> "OpenAIServer":
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        if not self._started.wait(10):
            raise RuntimeError("the test server didn't start within 10 seconds")
        return self

    def __exit__(self, *exc_info: object) -> None:
        assert self._loop is not None
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def serve_forever(self, announce: Callable[[str], None] = print) -> None:
        """Serve in this thread until it is interrupted; ``announce`` gets the base URL once it is listening."""
        asyncio.run(self._serve(announce))

    async def _serve(self, announce: Callable[[str], None] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        server = await self._loop.create_server(lambda: _Connection(self), "127.0.0.1", self.port, backlog=2048)
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        if announce is not None:
            announce(self.base_url)
        await self._stop.wait()
        server.close()
        for transport in tuple(self._connections):
            transport.abort()
        await asyncio.sleep(0)

    # ---------------------------------------------------------------- answering

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
        digest = hashlib.sha256(b"%d %d " % (self.seed, attempt) + body).digest()
        draw = int.from_bytes(digest[:8], "big") / 2**64
        for name, probability in self.faults.items():
            draw -= probability
            if draw < 0:
                return name
        return None

    def refusal(self) -> str | None:
        """The headers of the refusal that a limit makes of a request; ``None`` lets it in."""
        if self.most_in_flight is not None and self.in_flight >= self.most_in_flight:
            return ""
        if self.rate:
            now = time.monotonic()
            self._left, self._filled_at = min(self.burst, self._left + (now - self._filled_at) * self.rate), now
            if self._left < 1:
                return f"Retry-After: {(1 - self._left) / self.rate:.4f}\r\n"
            self._left -= 1
        return None

    def delay(self) -> float:
        """Seconds until a request that comes now is answered."""
        if self.capacity is None:
            return self.latency
        now = time.monotonic()
        self._free_at = sorted(max(now, at) for at in self._free_at)[-self.capacity :]
        starts = self._free_at.pop(0) if len(self._free_at) == self.capacity else now
        self._free_at.append(starts + self.latency)
        return starts + self.latency - now

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
        if fault == "cut":
            message["content"] = text[: max(len(text) // 2, 1)]
        elif fault == "huge":
            message["content"] = "left " * 2_000_000
        elif fault == "echo":
            message["content"] = json.dumps(credentials(self.headers)) + text
        elif fault in ("null-content", "content-filter", "tool-call"):
            message["content"] = None
            if fault == "tool-call":
                called = {"name": "move", "arguments": '{"direction": "left"}'}
                message["tool_calls"] = [{"id": "call_0", "type": "function", "function": called}]
        elif fault == "refusal":
            message |= {"content": None, "refusal": "I can't help with that."}
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


class _Connection(asyncio.Protocol):
    """One keep-alive connection; a bare protocol because a web framework costs more per request than the client."""

    def __init__(self, server: OpenAIServer) -> None:
        self.server = server
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server._connections.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.server._connections.discard(self.transport)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while True:
            head, separator, rest = self.buffer.partition(b"\r\n\r\n")
            if not separator:
                return
            lines = head.decode("latin-1").split("\r\n")
            headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:])}
            length = int(headers.get("content-length", 0))
            if len(rest) < length:
                return
            self.buffer = rest[length:]
            self.handle(lines[0], headers, rest[:length])

    def handle(self, request_line: str, headers: dict[str, str], body: bytes) -> None:
        server = self.server
        server.headers = headers
        method, target, _ = request_line.split(" ")
        path = target.partition("?")[0]
        authorised = server.api_key is None or headers.get("authorization") == f"Bearer {server.api_key}"
        if path.endswith("/stats"):
            self.send(200, server.stats())
        elif not authorised:
            self.refuse_key(headers)
        elif path.endswith("/models") and server.models is not None:
            data = [{"id": name, "object": "model", "created": 0} for name in server.models]
            self.send(200, {"object": "list", "data": data})
        elif method == "POST" and (route := openai_routes.PATHS.get(path.partition("/v1")[2].rstrip("/"))):
            self.generate(headers, body, route)
        else:
            self.send(404, {"error": {"message": f"no such path: {path}", "type": "invalid_request_error"}})

    def refuse_key(self, headers: dict[str, str]) -> None:
        self.server.served["401"] += 1
        message = f"Incorrect API key provided: {headers.get('authorization', '(none)')}"
        self.send(401, {"error": {"message": message, "type": "invalid_request_error", "code": "invalid_api_key"}})

    def generate(self, headers: dict[str, str], body: bytes, route: str) -> None:
        server = self.server
        try:
            request = json.loads(body)
            openai_routes.words_of(request, route)
        except (ValueError, KeyError, TypeError, AttributeError):
            self.send(400, {"error": {"message": f"not a request of {route}", "type": "invalid_request_error"}})
            return
        server.requests.append(request)
        if server.strict_names and request.get("model") not in (server.models or ("local", "m")):
            server.served["404"] += 1
            message = f"The model `{request.get('model')}` does not exist."
            self.send(404, {"error": {"message": message, "type": "NotFoundError", "code": 404}})
            return
        if server.only_route not in (None, route):
            message = openai_routes.WRONG_ROUTE[server.only_route]
            self.send(404, {"error": {"message": message, "type": "invalid_request_error", "param": "model"}})
            return
        if error := openai_routes.refusal(request, server.refused):
            self.send(400, {"error": error})
            return
        fault = server.pick_fault(body)
        if fault == "hang":
            server.served["hang"] += 1
            return
        if (limited := server.refusal()) is not None:
            server.served["limited"] += 1
            self.send(429, {"error": {"message": "Rate limit reached", "type": "requests"}}, limited)
            return
        server.in_flight += 1
        server.peak = max(server.peak, server.in_flight)
        delay = server.delay() + (server.slow if fault == "slow" else 0)
        asyncio.get_running_loop().call_later(delay, self.answer, request, headers, fault, route)

    def answer(self, request: Mapping[str, Any], headers: dict[str, str], fault: str | None, route: str) -> None:
        server = self.server
        server.in_flight -= 1
        if fault == "401":
            self.refuse_key(headers)
            return
        server.served[fault or "ok"] += 1
        if fault in RATE_LIMITS:
            error = {"error": {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}}
            self.send(503 if fault == "503-wait" else 429, error, RATE_LIMITS[fault](server.retry_after))
        elif fault == "no-quota":
            self.send(429, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}})
        elif fault == "old-limit" and "max_tokens" in request:
            message = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
            self.send(400, {"error": {"message": message, "type": "invalid_request_error", "param": "max_tokens"}})
        elif fault in ("400", "500"):
            self.send(int(fault), {"error": {"message": f"injected {fault}", "type": "injected"}})
        elif fault == "503":
            self.send(503, PAGE, content_type="text/html")
        elif fault == "redirect":
            self.send(308, b"", "Location: http://elsewhere.example/v1\r\n")
        elif fault == "echo-error":
            self.send(400, {"error": {"message": f"I know you: {credentials(headers)}"}})
        elif fault in ODD_BODIES:
            self.send(200, ODD_BODIES[fault], content_type="text/html" if fault == "html" else "application/json")
        elif fault in ("drop", "reset", "trickle"):
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{")
            if fault == "trickle":
                self.trickle()
            elif fault == "drop":
                self.transport.close()
            else:
                linger = struct.pack("ii", 1, 0)  # close() then sends RST
                self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.transport.abort()
        else:
            content_type = "text/html" if fault == "wrong-type" else "application/json"
            self.send(200, server.complete(request, fault, route), content_type=content_type)

    def trickle(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(b" ")
            asyncio.get_running_loop().call_later(self.server.slow, self.trickle)

    def send(
        self, status: int, body: dict[str, Any] | bytes, extra: str = "", content_type: str = "application/json"
    ) -> None:
        if self.transport.is_closing():
            return
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nContent-Length: {len(data)}\r\n{extra}\r\n"
        self.transport.write(head.encode() + data)


def value_of(text: str) -> Any:
    """What is JSON as JSON, and everything else as the text that it is."""
    with contextlib.suppress(ValueError):
        return json.loads(text)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description="A local OpenAI-compatible server with faults on demand.")
    for name, parameter in inspect.signature(OpenAIServer).parameters.items():
        if name not in ("respond", "calls"):
            parser.add_argument(f"--{name.replace('_', '-')}", type=value_of, default=parameter.default)
    server = OpenAIServer(**vars(parser.parse_args()))
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever(lambda url: print(url, flush=True))


if __name__ == "__main__":
    main()
