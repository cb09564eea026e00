"""A local server that speaks the OpenAI chat-completions protocol, with faults on demand. Standard library only.

As a process (the first line on standard output is the base URL; it serves until it is killed)::

    python tests/agents/openai_server.py --latency 0.2 --fault 429=0.1 --fault malformed=0.05

In a test, on a thread of its own::

    with OpenAIServer(latency=0.01, faults={"500": 0.2}) as server:
        client = AsyncOpenAI(base_url=server.base_url, api_key="anything")

Whether a request is hit by a fault is decided by a hash of the request's body and of how often that body was seen, so
it depends neither on order nor on concurrency. ``GET /v1/stats`` tells what was served.
"""

import argparse
import asyncio
import contextlib
import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

FAULTS: dict[str, str] = {
    "400": "status 400, which must not be retried",
    "401": "status 401 that quotes the key, which must not be retried and must not leak",
    "429": "status 429 with Retry-After: --retry-after seconds",
    "500": "status 500",
    "503": "status 503 with an HTML body, as a proxy sends it",
    "slow": "the answer --slow seconds late",
    "hang": "no answer at all",
    "drop": "the connection closed in the middle of the body",
    "malformed": "status 200 with a body that isn't JSON",
    "wrong-shape": "status 200 with JSON that isn't a completion",
    "no-choices": "a completion without choices",
    "null-content": "a completion whose content is null",
    "refusal": "a completion with a refusal instead of content",
    "content-filter": "an answer withheld by the content filter",
    "cut": "an answer cut off in the middle, finish_reason length",
    "garbage": "an answer that names no action",
    "old-limit": "status 400 to max_tokens, as models answer that want max_completion_tokens",
}

MOVES = ("left", "down", "right", "up")


def random_move(request: Mapping[str, Any]) -> str:
    """An answer in the think template whose move depends on the request's text alone."""
    text = json.dumps(request.get("messages"), sort_keys=True)
    move = MOVES[hashlib.sha256(text.encode()).digest()[0] % len(MOVES)]
    return f"<think>Any move will do.</think><plan>{move}</plan><action>{move}</action>"


class OpenAIServer:
    """The server: start it with ``with`` (a thread) or :meth:`serve_forever` (this thread).

    Args:
        latency: seconds between a request and its answer.
        respond: ``request body -> full answer``; stop strings and the token limit are applied to it here.
        faults: ``{fault: probability}``, names as in ``FAULTS``; the probabilities add up to at most 1.
        fault_attempts: how often the same body can be hit before it always gets an answer; ``None`` for always.
        api_key: when given, other keys get a 401.
        seed: of the faults.
    """

    def __init__(
        self,
        *,
        latency: float = 0.0,
        respond: Callable[[Mapping[str, Any]], str] = random_move,
        faults: Mapping[str, float] | None = None,
        fault_attempts: int | None = None,
        api_key: str | None = None,
        retry_after: float = 0.05,
        slow: float = 2.0,
        seed: int = 0,
        port: int = 0,
    ) -> None:
        self.latency, self.respond, self.faults = latency, respond, dict(faults or {})
        self.fault_attempts, self.api_key, self.retry_after, self.slow = fault_attempts, api_key, retry_after, slow
        self.seed, self.port = seed, port
        unknown = [name for name in self.faults if name not in FAULTS]
        if unknown or sum(self.faults.values()) > 1 + 1e-9:
            raise ValueError(f"faults are {', '.join(FAULTS)}, adding up to at most 1; got {self.faults}")
        self.requests: list[dict[str, Any]] = []
        """The bodies of all chat requests when :attr:`keep_requests` is set."""
        self.keep_requests = False
        self.headers: dict[str, str] = {}
        """The headers of the latest request."""
        self.served: Counter[str] = Counter()
        """Answers by kind: ``"ok"`` or the fault's name."""
        self.in_flight = self.peak = 0
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
        return {"served": dict(self.served), "in_flight": self.in_flight, "peak": self.peak}

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

    def complete(self, request: Mapping[str, Any], fault: str | None) -> dict[str, Any]:
        """The body of a status 200 answer to a well-formed request."""
        text, finish_reason = self.respond(request), "stop"
        if fault == "garbage":
            text = "I would rather not say where I'm going."
        stops = request.get("stop") or []
        for stop in [stops] if isinstance(stops, str) else stops:
            text = text.partition(stop)[0]  # servers cut the stop string out
        limit = request.get("max_completion_tokens") or request.get("max_tokens")
        words = text.split(" ")
        if limit is not None and len(words) > limit:
            text, finish_reason = " ".join(words[:limit]), "length"
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if fault == "cut":
            message["content"], finish_reason = text[: max(len(text) // 2, 1)], "length"
        elif fault == "null-content":
            message["content"] = None
        elif fault == "refusal":
            message |= {"content": None, "refusal": "I can't help with that."}
        elif fault == "content-filter":
            message["content"], finish_reason = None, "content_filter"
        prompt_tokens = sum(len(m["content"].split()) for m in request.get("messages", ()))
        usage = {"prompt_tokens": prompt_tokens, "completion_tokens": len(words)}
        choice = {"index": 0, "message": message, "finish_reason": finish_reason, "logprobs": None}
        return {
            "id": "chatcmpl-local",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": request.get("model", "local"),
            "choices": [] if fault == "no-choices" else [choice],
            "usage": usage | {"total_tokens": sum(usage.values())},
        }


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
        elif path.endswith("/models"):
            self.send(200, {"object": "list", "data": [{"id": "local", "object": "model", "created": 0}]})
        elif method == "POST" and path.endswith("/chat/completions"):
            self.chat(headers, body)
        else:
            self.send(404, {"error": {"message": f"no such path: {path}", "type": "invalid_request_error"}})

    def refuse_key(self, headers: dict[str, str]) -> None:
        self.server.served["401"] += 1
        message = f"Incorrect API key provided: {headers.get('authorization', '(none)')}"
        self.send(401, {"error": {"message": message, "type": "invalid_request_error", "code": "invalid_api_key"}})

    def chat(self, headers: dict[str, str], body: bytes) -> None:
        server = self.server
        try:
            request = json.loads(body)
            assert isinstance(request["messages"], list)
        except (ValueError, KeyError, TypeError, AssertionError):
            self.send(400, {"error": {"message": "not a chat request", "type": "invalid_request_error"}})
            return
        if server.keep_requests:
            server.requests.append(request)
        fault = server.pick_fault(body)
        if fault == "hang":
            server.served["hang"] += 1
            return
        server.in_flight += 1
        server.peak = max(server.peak, server.in_flight)
        delay = server.latency + (server.slow if fault == "slow" else 0)
        asyncio.get_running_loop().call_later(delay, self.answer, request, headers, fault)

    def answer(self, request: Mapping[str, Any], headers: dict[str, str], fault: str | None) -> None:
        server = self.server
        server.in_flight -= 1
        if fault == "401":
            self.refuse_key(headers)
            return
        server.served[fault or "ok"] += 1
        if fault == "429":
            error = {"error": {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}}
            self.send(429, error, f"Retry-After: {server.retry_after}\r\n")
        elif fault == "old-limit" and "max_tokens" in request:
            message = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
            self.send(400, {"error": {"message": message, "type": "invalid_request_error", "param": "max_tokens"}})
        elif fault in ("400", "500"):
            self.send(int(fault), {"error": {"message": f"injected {fault}", "type": "injected"}})
        elif fault == "503":
            self.send(503, b"<html><body>503 Service Unavailable</body></html>", content_type="text/html")
        elif fault == "malformed":
            self.send(200, b'{"id": "chatcmpl-local", "choices": [{"mess')
        elif fault == "wrong-shape":
            self.send(200, {"choices": [{"text": "left"}], "usage": "none"})
        elif fault == "drop":
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{")
            self.transport.close()
        else:
            self.send(200, server.complete(request, fault))

    def send(
        self, status: int, body: dict[str, Any] | bytes, extra: str = "", content_type: str = "application/json"
    ) -> None:
        if self.transport.is_closing():
            return
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nContent-Length: {len(data)}\r\n{extra}\r\n"
        self.transport.write(head.encode() + data)


def main() -> None:
    parser = argparse.ArgumentParser(description="A local OpenAI-compatible server with faults on demand.")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds per request")
    parser.add_argument("--fault", action="append", default=[], metavar="NAME=PROBABILITY", help=", ".join(FAULTS))
    parser.add_argument("--fault-attempts", type=int, help="how often one body can be hit")
    parser.add_argument("--retry-after", type=float, default=0.05)
    parser.add_argument("--slow", type=float, default=2.0)
    parser.add_argument("--api-key", help="other keys get a 401")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    faults = {name: float(p) for name, _, p in (fault.partition("=") for fault in args.fault)}
    server = OpenAIServer(
        latency=args.latency,
        faults=faults,
        fault_attempts=args.fault_attempts,
        api_key=args.api_key,
        retry_after=args.retry_after,
        slow=args.slow,
        seed=args.seed,
        port=args.port,
    )
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever(lambda url: print(url, flush=True))


if __name__ == "__main__":
    main()
