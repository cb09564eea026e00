"""How much of a limited server's rate the loop gets: episodes against a local server with limits of several kinds.

The ideal is what the server takes: requests or tokens a minute, or so many at a time. Beside it stands a named peer in
the same run: a bare ``openai`` client with as many plain request loops and its own retries (``max_retries=100``). Both
are measured in their steady state. ::

    python research/perf/rate_limits.py [--seconds 10] [--only NAME ...]
"""

import argparse
import asyncio
import itertools
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

ROOT = Path(__file__).parents[2]
SERVER = "tests.agents.openai_server"
IN_FLIGHT = 64
LIMIT = 256  # tokens of a response at most, which limits on tokens count


class Case(NamedTuple):
    """One kind of limit: the server's options, and the requests a second that it takes."""

    options: str
    ideal: float


CASES = {
    "requests a minute, told": Case("--requests-per-minute 1200 --burst 20 --limit-headers openai", 20),
    "requests a minute, told by Anthropic": Case("--requests-per-minute 1200 --burst 20 --limit-headers anthropic", 20),
    "requests a minute, refusals name a time": Case("--requests-per-minute 1200 --burst 20", 20),
    "tokens a minute, told": Case("--tokens-per-minute {tokens} --burst 20 --limit-headers openai", 20),
    "windows of 2 s, refusals name a time": Case("--requests-per-minute 1200 --window 2", 20),
    "windows of 2 s, told": Case("--requests-per-minute 1200 --window 2 --limit-headers openai", 20),
    "8 in flight, refusals name no time": Case("--most-in-flight 8 --latency 0.4", 8 / 0.4),
    "capacity of 8, no refusals": Case("--capacity 8 --latency 0.4", 8 / 0.4),
}


def served(base_url: str) -> tuple[int, int]:
    """Requests that the server has answered and refused so far."""
    with urlopen(f"{base_url}/stats") as answer:
        counts = json.load(answer)["served"]
    return counts.get("ok", 0), counts.get("limited", 0)


def textbench_rate(base_url: str, seconds: float) -> tuple[float, float]:
    """Requests a second of the loop in its steady state, and refusals per answer."""
    from agents import Decoding, EpisodeTask, LanguageAgentPolicy, rollout
    from agents.models import OpenAIModel

    model = OpenAIModel("local", base_url=base_url, api_key="none")
    policy = LanguageAgentPolicy(model, decoding=Decoding(max_tokens=LIMIT))
    tasks = (EpisodeTask.of("snake-long", seed) for seed in itertools.count())
    times: list[float] = []
    episodes = rollout(policy, tasks, max_concurrency=IN_FLIGHT, on_step=lambda *_: times.append(time.perf_counter()))
    started, before = time.perf_counter() + 3.0, None  # a bucket's store is used up by then
    for _ in episodes:
        now = time.perf_counter()
        if before is None and now > started:
            started, before = now, served(base_url)
        if now > started + seconds and before is not None:
            break
    assert before is not None
    wall, after = time.perf_counter() - started, served(base_url)
    episodes.close()
    done, refused = (late - early for late, early in zip(after, before, strict=True))
    return done / wall, refused / max(1, done)


async def bare_client_rate(base_url: str, seconds: float) -> tuple[float, float]:
    """Return the rate of a bare client against the same server."""
    import openai

    stop = time.perf_counter() + 3.0 + seconds
    async with openai.AsyncOpenAI(base_url=base_url, api_key="none", max_retries=100) as client:

        async def ask() -> None:
            messages = [{"role": "user", "content": "word " * 300}]
            while time.perf_counter() < stop:
                await client.chat.completions.create(model="local", messages=messages, max_tokens=LIMIT)

        tasks = [asyncio.create_task(ask()) for _ in range(IN_FLIGHT)]
        await asyncio.sleep(3.0)
        started, before = time.perf_counter(), await asyncio.to_thread(served, base_url)
        await asyncio.sleep(seconds)
        wall, after = time.perf_counter() - started, await asyncio.to_thread(served, base_url)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    done, refused = (late - early for late, early in zip(after, before, strict=True))
    return done / wall, refused / max(1, done)


def with_server(options: str, measure) -> tuple[float, float]:
    """Return what ``measure`` gives of a fresh server."""
    command = [sys.executable, "-m", SERVER, *options.split()]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert server.stdout is not None
        result: tuple[float, float] = measure(server.stdout.readline().strip())
        return result
    finally:
        server.kill()
        server.communicate()


def main() -> None:
    parser = argparse.ArgumentParser(description="The share of a limited server's rate that the loop gets.")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), metavar="NAME")
    args = parser.parse_args()
    print(f"{IN_FLIGHT} in flight; in brackets the share of the ideal; refused: refusals per answer")
    print(f"{'limit':<40} {'ideal/s':>8} {'textbench':>15} {'refused':>8} {'bare client':>15} {'refused':>8}")
    for name in args.only:
        options, ideal = CASES[name]
        # a request takes the words of its prompt, of which there are 369 in snake-long, and its limit
        ours, our_refused = with_server(
            options.format(tokens=20 * 60 * 625), lambda url: textbench_rate(url, args.seconds)
        )
        peer, peer_refused = with_server(
            options.format(tokens=20 * 60 * 556), lambda url: asyncio.run(bare_client_rate(url, args.seconds))
        )
        print(
            f"{name:<40} {ideal:>8.1f} {ours:>8.1f} ({ours / ideal:4.0%}) {our_refused:>8.2f}"
            f" {peer:>8.1f} ({peer / ideal:4.0%}) {peer_refused:>8.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
