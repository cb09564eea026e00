"""How much of a server's capacity the loop uses, beside a bare ``openai`` client in the same run.

    python research/perf/served.py latency [--latency 0.2] [--in-flight 8 64 256]   # a server with a fixed latency
    python research/perf/served.py limits                                         # one that limits the number in flight

The ideal is ``in flight / latency`` requests a second, or what a limited server takes. The peer is a bare client with
as many plain request loops and, against limits, its own retries (``max_retries=100``). Both are measured in their
steady state.
"""

import argparse
import asyncio
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

ROOT = Path(__file__).parents[2]
IN_FLIGHT = 64  # against a limited server
LIMIT = 256  # tokens of a response at most
WARM_UP = 3.0  # seconds


class Rate(NamedTuple):
    """Requests a second, refusals per answer, and milliseconds of the client's processor time per answer."""

    rate: float
    refused: float
    milliseconds: float


class Meter:
    """Answers and refusals of a server between two moments."""

    def __init__(self, base_url: str) -> None:
        self.base_url, self.cpu, self.before = base_url, time.process_time(), self.counts(base_url)
        self.started = time.perf_counter()

    @staticmethod
    def counts(base_url: str) -> tuple[int, int]:
        with urlopen(f"{base_url}/stats") as answer:
            counts = json.load(answer)["served"]
        return counts.get("ok", 0), counts.get("limited", 0)

    def read(self) -> Rate:
        wall, cpu = time.perf_counter() - self.started, time.process_time() - self.cpu
        done, refused = (late - early for late, early in zip(self.counts(self.base_url), self.before, strict=True))
        return Rate(done / wall, refused / max(1, done), 1e3 * cpu / max(1, done))


def textbench(base_url: str, in_flight: int, seconds: float) -> Rate:
    """Measure the loop."""
    from agents import Decoding, EpisodeTask, LanguageAgentPolicy, rollout
    from agents.models import OpenAIModel

    model = OpenAIModel("local", base_url=base_url, api_key="none")
    policy = LanguageAgentPolicy(model, decoding=Decoding(max_tokens=LIMIT))
    tasks = (EpisodeTask.of("snake-long", seed) for seed in itertools.count())
    episodes = rollout(policy, tasks, max_concurrency=in_flight)
    warm, meter = time.perf_counter() + WARM_UP, None
    for _ in episodes:
        if meter is None and time.perf_counter() > warm:
            meter = Meter(base_url)
        if meter is not None and time.perf_counter() > meter.started + seconds:
            break
    assert meter is not None
    measured = meter.read()
    episodes.close()
    return measured


def bare_client(base_url: str, in_flight: int, seconds: float) -> Rate:
    """Measure a bare client against the same server."""

    async def measure() -> Rate:
        import openai

        async with openai.AsyncOpenAI(base_url=base_url, api_key="none", max_retries=100) as client:

            async def ask() -> None:
                messages = [{"role": "user", "content": "word " * 300}]
                while True:
                    await client.chat.completions.create(model="local", messages=messages, max_tokens=LIMIT)

            tasks = [asyncio.create_task(ask()) for _ in range(in_flight)]
            await asyncio.sleep(WARM_UP)
            meter = await asyncio.to_thread(Meter, base_url)
            await asyncio.sleep(seconds)
            measured = await asyncio.to_thread(meter.read)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return measured

    return asyncio.run(measure())


def compare(title: str, options: str, ideal: float, in_flight: int, seconds: float) -> None:
    """Print one line: both clients, each against a fresh server."""
    clients: dict[str, Callable[[str, int, float], Rate]] = {"textbench": textbench, "bare client": bare_client}
    line = f"{title:<40} {ideal:>8.1f}"
    for client in clients.values():
        command = [sys.executable, "-m", "tests.agents.openai_server", *options.split()]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as server:
            assert server.stdout is not None
            try:
                got = client(server.stdout.readline().strip(), in_flight, seconds)
            finally:
                server.kill()
        line += f" {got.rate:>9.1f} ({got.rate / ideal:4.0%}) {got.refused:>7.2f} {got.milliseconds:>7.2f} ms"
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("latency", "limits"))
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--in-flight", type=int, nargs="+", default=[8, 64, 256])
    parser.add_argument("--seconds", type=float, default=10.0)
    args = parser.parse_args()
    print("requests a second (share of the ideal), refusals per answer, the client's processor time per answer")
    print(f"{'':<40} {'ideal/s':>8} {'textbench':>34} {'bare openai client':>34}")
    if args.what == "latency":
        for number in args.in_flight:
            compare(f"{number} in flight", f"--latency {args.latency}", number / args.latency, number, args.seconds)
    else:
        options = "--most-in-flight 8 --latency 0.4"
        compare("8 in flight, refusals name no time", options, 8 / 0.4, IN_FLIGHT, args.seconds)


if __name__ == "__main__":
    main()
