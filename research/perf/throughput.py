"""How much of a server's capacity the loop uses: episodes against a local server with a fixed latency.

The ideal is ``concurrency / latency`` requests per second. Beside it stands a named peer measured in the same run: a
bare ``openai`` client (its default transport and its own decoding) with as many plain request loops. ::

    python research/perf/throughput.py [--latency 0.2] [--seconds 8] [--concurrency 8 64 256]
"""

import argparse
import asyncio
import itertools
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
SERVER = "tests.agents.openai_server"


def textbench_rate(base_url: str, concurrency: int, seconds: float) -> tuple[float, float]:
    """Requests per second of the loop in its steady state, and its processor time per request in milliseconds."""
    from agents import EpisodeTask, LanguageAgentPolicy, rollout
    from agents.models import OpenAIModel

    policy = LanguageAgentPolicy(OpenAIModel("local", base_url=base_url, api_key="none"))
    tasks = (EpisodeTask.of("snake-long", seed) for seed in itertools.count())
    asked = 0

    def count(*_: object) -> None:
        nonlocal asked
        asked += 1

    episodes = rollout(policy, tasks, max_concurrency=concurrency, on_step=count)
    warm_up = time.perf_counter() + 2.0
    for _ in episodes:
        if time.perf_counter() > warm_up:
            break
    before, cpu, started = asked, time.process_time(), time.perf_counter()
    for _ in episodes:
        if time.perf_counter() - started > seconds:
            break
    wall, cpu, done = time.perf_counter() - started, time.process_time() - cpu, asked - before
    episodes.close()
    return done / wall, cpu / done * 1e3


async def plain_client_rate(base_url: str, concurrency: int, seconds: float) -> tuple[float, float]:
    """Return the rate of a bare client that sends one fixed prompt in ``concurrency`` loops."""
    import openai

    done, stop = 0, 0.0
    async with openai.AsyncOpenAI(base_url=base_url, api_key="none") as client:

        async def ask() -> None:
            nonlocal done
            while time.perf_counter() < stop:
                await client.chat.completions.create(
                    model="local", messages=[{"role": "user", "content": "x" * 2000}], temperature=0.5, max_tokens=256
                )
                done += 1

        for length in (2.0, seconds):
            done, cpu, started = 0, time.process_time(), time.perf_counter()
            stop = started + length
            await asyncio.gather(*(ask() for _ in range(concurrency)))
        wall, cpu = time.perf_counter() - started, time.process_time() - cpu
    return done / wall, cpu / done * 1e3


def compare(base_url: str, latency: float, seconds: float, concurrencies: list[int]) -> None:
    """Print one line for each concurrency."""
    print(f"server latency {latency} s; in brackets the share of the ideal; cpu is the client's, per request")
    print(f"{'in flight':>9} {'ideal/s':>8} {'textbench':>20} {'cpu':>8} {'bare openai client':>20} {'cpu':>8}")
    for concurrency in concurrencies:
        ideal = concurrency / latency
        ours, our_cpu = textbench_rate(base_url, concurrency, seconds)
        peer, peer_cpu = asyncio.run(plain_client_rate(base_url, concurrency, seconds))
        print(
            f"{concurrency:>9} {ideal:>8.0f} {ours:>13.0f} ({ours / ideal:4.0%}) {our_cpu:>5.2f} ms"
            f" {peer:>13.0f} ({peer / ideal:4.0%}) {peer_cpu:>5.2f} ms",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Throughput of the loop against a server with a fixed latency.")
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[8, 64, 256])
    args = parser.parse_args()
    command = [sys.executable, "-m", SERVER, "--latency", str(args.latency)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert server.stdout is not None
        compare(server.stdout.readline().strip(), args.latency, args.seconds, args.concurrency)
    finally:
        server.kill()
        server.communicate()


if __name__ == "__main__":
    main()
