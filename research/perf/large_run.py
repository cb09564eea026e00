"""A large run of a scripted agent: processor time against the bare loop, and peak memory. ::

    python research/perf/large_run.py [--episodes 100000]

The named peer is :func:`agents.loop.rollout.rollout` alone, with the same agent and scenarios and nothing kept: what is
above it is the price of writing every episode down and of the leaderboard. Memory is the peak of a process.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = """
import resource, sys, time
from benchmark.cli import main
code = main(sys.argv[1:])
print("MEASURED", time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, file=sys.stderr)
sys.exit(code)
"""


def command(*arguments: str) -> tuple[float, float]:
    """Run a command in a process of its own: (processor seconds, peak MB)."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", CODE, *arguments], env=environment, capture_output=True, text=True)
    measured = next((line for line in done.stderr.splitlines() if line.startswith("MEASURED")), None)
    if measured is None:
        raise SystemExit(done.stderr)
    return float(measured.split()[1]), float(measured.split()[2])


def bare_loop(episodes: int) -> float:
    """Processor seconds of the loop alone, per episode."""
    from agents import EpisodeTask, load_agent, rollout
    from benchmark.runs import PAPER_SCENARIOS
    from textgames import SCENARIOS

    tasks = chain.from_iterable(
        (EpisodeTask.of(name, SCENARIOS[name].seed(k)) for k in range(episodes // len(PAPER_SCENARIOS)))
        for name in PAPER_SCENARIOS
    )
    started = time.process_time()
    count = sum(1 for _ in rollout(load_agent("random"), tasks))
    return (time.process_time() - started) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=100_000)
    args = parser.parse_args()
    bare = bare_loop(min(args.episodes, 20_000))
    with tempfile.TemporaryDirectory() as folder:
        run = str(Path(folder) / "run")
        each = str(args.episodes // 4)
        play = command("run", "--agent", "random", "--episodes", each, "--out", run, "--quiet")
        show = command("leaderboard", run, "--quiet")
        page = command("leaderboard", run, "--html", str(Path(folder) / "page.html"), "--quiet")
        size = (Path(run) / "episodes.jsonl").stat().st_size
    print(f"{args.episodes} episodes of the random agent on the paper's scenarios, {size / 1e6:.0f} MB on disk")
    print(f"bare loop          {1e3 * bare:6.2f} ms of processor time per episode")
    per_episode = play[0] / args.episodes
    print(f"textbench run      {1e3 * per_episode:6.2f} ms, {per_episode / bare:.2f} times the loop")
    print(f"                   {play[1]:6.0f} MB peak, its leaderboard included")
    print(f"leaderboard        {show[0]:6.1f} s, {show[1]:.0f} MB peak")
    print(f"leaderboard --html {page[0]:6.1f} s, {page[1]:.0f} MB peak (steps of the first 5,000 episodes)")
    print(f"this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB peak")


if __name__ == "__main__":
    main()
