"""Playing on a Ray cluster: what an episode costs the driver, how throughput grows with workers, and new weights. ::

    python research/perf/cluster.py [--workers 1 2 4 8 16] [--episodes 2000] [--megabytes 64 512] [--json]

Three measurements, on a cluster of nodes that all are this machine:

* **the driver's own work**: processor seconds of the process that asks and writes, per episode of the random player on
  Frozen Lake, as a whole command with a run folder. The named peer is the same command without a cluster. What the
  driver needs per episode is what the largest cluster can't get below.
* **throughput by workers**: players that wait 50 ms for each batch, as for a GPU or a server, and use next to no
  processor time, so that there can be more workers than cores here. The peer is one worker; ideal is linear growth.
* **weights**: seconds to put an object of the size of the weights into the store, and until a worker on each of two
  nodes has it. All nodes share this machine's memory bus and loopback: a network is slower, see docs/cluster.md.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from large_run import command

from agents import Episode, EpisodeTask, Turn, load_agent
from agents.cluster import Cluster, Pace

WAIT = 0.05  # seconds that a waiting player takes for a batch
IN_FLIGHT = 4  # episodes of a batch


class Waiting:
    """The random player, which takes its time for a batch as a model on another device does."""

    name = "waiting"

    def __init__(self) -> None:
        self._random = load_agent("random")

    def act(self, requests: Any) -> list[Turn]:
        time.sleep(WAIT)
        return self._random.act(requests)


@dataclass(frozen=True)
class WaitingSetup:
    """Waiting players on the workers; only the seed comes back."""

    def make(self) -> Waiting:
        return Waiting()

    def policies(self, made: Waiting, news: object) -> Waiting:
        return made

    def result(self, episode: Episode) -> tuple[int, int]:
        return episode.seed, os.getpid()

    def answer(self, made: Waiting, news: Any, question: float) -> int:
        """Take a reference and say how large it is; wait so that no worker answers for another one."""
        import ray

        size: int = ray.get(news[0]).nbytes if news else 0
        time.sleep(question)
        return size


@contextmanager
def cluster_here(*cores: int) -> Iterator[str]:
    """Yield the address of a cluster with one node for each number of cores, which need not exist."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    from ray.cluster_utils import Cluster as LocalCluster

    local = LocalCluster(initialize_head=True, head_node_args={"num_cpus": cores[0], "include_dashboard": False})
    for count in cores[1:]:
        local.add_node(num_cpus=count)
    try:
        yield local.address
    finally:
        ray.shutdown()
        local.shutdown()


def driver_seconds(episodes: int, *where: str) -> float:
    """Processor seconds per episode of a run's own process, start and leaderboard left out."""

    def seconds(count: int) -> float:
        with tempfile.TemporaryDirectory() as folder:
            what = ("--agent", "random", "--scenario", "frozen-lake", "--episodes", str(count), "--quiet", *where)
            return command("run", *what, "--out", f"{folder}/run")[0]

    return (seconds(episodes) - seconds(10)) / (episodes - 10)


def throughput(address: str, workers: int, episodes_each: int) -> tuple[float, int]:
    """Return episodes a second of so many workers that have started, and how many of them have played."""
    total = workers * episodes_each
    with Cluster(address, most_workers=workers) as cluster:
        while len(cluster.ask(WaitingSetup(), None, 0.0)) < workers:  # all are there before the clock starts
            time.sleep(0.1)
        tasks = (EpisodeTask.of("frozen-lake", 10_000 + k) for k in range(total))
        started = time.perf_counter()
        played = list(cluster.rollout(WaitingSetup(), tasks, total, pace=Pace(IN_FLIGHT)))
        seconds = time.perf_counter() - started
    assert len(played) == total
    return total / seconds, len({process for _, process in played})


def weights_seconds(address: str, megabytes: int) -> tuple[float, float]:
    """Return seconds to put new weights, and from then until a worker on each of two nodes has them."""
    import numpy as np
    import ray

    with Cluster(address, most_workers=2) as cluster:
        while len(cluster.ask(WaitingSetup(), None, 0.0)) < 2:
            time.sleep(0.1)
        weights = np.ones(megabytes * 2**20, dtype=np.uint8)
        started = time.perf_counter()
        reference = ray.put(weights)
        put = time.perf_counter() - started
        sizes = cluster.ask(WaitingSetup(), (reference,), 0.0)
        assert sizes == [weights.nbytes] * 2
        return put, time.perf_counter() - started - put


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--episodes", type=int, default=2000, help="of the driver's measurement")
    parser.add_argument("--each", type=int, default=160, help="episodes of each worker when throughput is measured")
    parser.add_argument("--megabytes", type=int, nargs="+", default=[64, 512])
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    report: dict[str, Any] = {}
    alone = driver_seconds(args.episodes)
    with cluster_here(1, 1) as address:
        there = driver_seconds(args.episodes, "--ray", address)
        report["weights"] = {
            megabytes: dict(zip(("put", "fetch"), weights_seconds(address, megabytes), strict=True))
            for megabytes in args.megabytes
        }
    report["driver"] = {"alone": alone, "cluster": there}
    with cluster_here(max(args.workers)) as address:
        report["throughput"] = {count: throughput(address, count, args.each) for count in args.workers}
    if args.json:
        print(json.dumps(report, indent=1))
        return
    print(f"the driver's processor time per episode: {there * 1e3:.2f} ms on a cluster, {alone * 1e3:.2f} ms alone, ")
    print(f"  ratio {there / alone:.2f}; one driver's core keeps up with {1 / there:,.0f} episodes a second")
    first = report["throughput"][args.workers[0]][0] / args.workers[0]
    for count, (rate, played) in report["throughput"].items():
        share = rate / (first * count)
        print(f"{count:4d} workers: {rate:7.1f} episodes/s, {100 * share:4.0f}% of linear ({played} of them played)")
    for megabytes, seconds in report["weights"].items():
        put, fetch = seconds["put"], seconds["fetch"]
        print(f"{megabytes:5d} MiB of weights: put in {put:.3f} s, on both nodes {fetch:.3f} s later")


if __name__ == "__main__":
    main()
