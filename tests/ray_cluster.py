"""A Ray cluster of several nodes on this machine, for tests."""

import os
import time

import psutil
import pytest

WORKER = "ray::EpisodeWorker"  # what Ray calls the processes of our workers, with the method that they are in


def start_cluster(*cores: int):
    pytest.importorskip("ray", reason="ray isn't installed: pip install -c constraints.txt -e '.[ray]'")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": cores[0], "include_dashboard": False})
    for count in cores[1:]:
        cluster.add_node(num_cpus=count)
    return cluster


def stop_cluster(cluster) -> None:
    import ray

    ray.shutdown()
    cluster.shutdown()


def worker_processes() -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            title = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if title.startswith(f"{WORKER}.play"):
            found.append(process)
    return found


def wait_until(happened, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it didn't happen in time"
        time.sleep(0.02)
