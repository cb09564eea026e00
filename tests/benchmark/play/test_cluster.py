"""Runs on a Ray cluster: the same folder as without, whatever happens to the workers."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmark.runs.folder import RunFolder
from tests.benchmark.helpers import PLAYERS, counted, refused, steps_in
from tests.ray_cluster import start_cluster, stop_cluster, wait_until, worker_processes

pytestmark = pytest.mark.engines

SEVERAL = ("--agent", "random", "--agent", "greedy", "--agent", f"thinking={PLAYERS}:Thinking")
SLOWER = ("--agent", f"slower={PLAYERS}:Slower", "--scenario", "frozen-lake", "--max-concurrency", 2)
SCENARIOS = ("--scenario", "frozen-lake", "--scenario", "snake-duel")


@pytest.fixture(scope="module")
def two_nodes():
    """The address of a cluster of two machines with one core each."""
    os.environ["SECRET_OF_THE_WORKERS_KEY"] = "worker-secret-7a1b2c3d"
    cluster = start_cluster(1, 1)
    del os.environ["SECRET_OF_THE_WORKERS_KEY"]
    yield cluster.address
    stop_cluster(cluster)


@pytest.fixture
def alone(textbench):
    assert textbench("run", *SLOWER, "--episodes", 60, "--out", "alone", "--quiet").code == 0
    return counted("alone")


def driver(*arguments):
    """A process that plays the slower player into the folder r."""
    command = ("run", *SLOWER, "--out", "r", "--quiet", *arguments)
    with Path("err.txt").open("w") as err:
        arguments = [sys.executable, "-m", "benchmark.cli", *map(str, command)]
        return subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=err)


def told(done):
    document = json.loads(done.out)
    for score in document["scores"]:
        score["seconds"] = score["cpu_seconds"] = None
    return {**document, "run": "", "sources": []}


def finished(folder):
    file = Path(folder, "episodes.jsonl")
    return file.read_bytes().count(b"\n") if file.exists() else 0


def test_equal_bytes_whatever_the_number_of_workers(textbench, two_nodes):
    command = ("run", *SEVERAL, *SCENARIOS, "--episodes", 8, "--quiet", "--json")
    here = textbench(*command, "--out", "here")
    assert here.code == 0, here.err
    for workers in (1, 2):
        there = textbench(*command, "--out", f"there{workers}", "--ray", two_nodes, "--ray-workers", workers)
        assert there.code == 0, there.err
        assert counted(f"there{workers}") == counted("here")
        assert told(there) == told(here)
    manifests = [RunFolder.open(Path(name)).manifest for name in ("here", "there2")]
    assert all(manifests[0][key] == manifests[1][key] for key in manifests[0] if key != "sessions")


def test_a_worker_is_killed_in_the_middle(textbench, two_nodes, alone):
    process = driver("--episodes", 60, "--ray", two_nodes)
    wait_until(lambda: finished("r") >= 5)
    worker_processes()[0].kill()
    assert process.wait(timeout=60) == 0
    # here, two workers, and the one that came for the one that went
    assert len(list(Path("who_played").iterdir())) >= 4
    assert counted("r") == alone


def test_a_machine_joins_and_another_is_lost(textbench, workplace, alone):
    cluster = start_cluster(1)
    try:
        process = driver("--episodes", 160, "--ray", cluster.address)
        wait_until(lambda: finished("r") >= 3)
        second = cluster.add_node(num_cpus=1)
        wait_until(lambda: len(worker_processes()) == 2)
        before = finished("r")
        wait_until(lambda: finished("r") >= before + 5)
        assert process.poll() is None
        cluster.remove_node(second, allow_graceful=False)
        assert process.wait(timeout=60) == 0
    finally:
        stop_cluster(cluster)
    assert finished("r") == 160
    assert set(counted("r").splitlines()) > set(alone.splitlines())


def test_ctrl_c_keeps_what_was_played_and_says_how_to_go_on(textbench, two_nodes, alone):
    process = driver("--episodes", 60, "--ray", two_nodes)
    wait_until(lambda: finished("r") >= 5)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    err = Path("err.txt").read_text()
    assert "Traceback" not in err
    assert err.splitlines()[-1] == f"  textbench resume r --ray {two_nodes}"
    assert textbench("resume", "r", "--quiet").code == 0  # and without the cluster
    assert counted("r") == alone


def test_limits(textbench, two_nodes):
    thinking = ("run", "--agent", f"thinking={PLAYERS}:Thinking", "--scenario", "frozen-lake", "--episodes", 300)
    where = ("--ray", two_nodes, "--max-concurrency", 4, "--quiet")
    assert "the run's time is up (--run-timeout 3)" in textbench(*thinking, *where, "--run-timeout", 3).err
    Path("prices.toml").write_text("[prices.thinking]\ninput = 1000.0\noutput = 0.0\n")  # a dollar a decision
    dear = textbench(*thinking, *where, "--prices", "prices.toml", "--max-cost", 40, "--out", "dear")
    assert (dear.code, "the money is used up" in dear.err) == (1, True)
    assert 20 <= len(steps_in("dear")) <= 40 + 4 * 8  # what is in flight is paid for, too
    gave_up = textbench("run", "--agent", f"{PLAYERS}:Dead", "--scenario", "frozen-lake", *where)
    assert (gave_up.code, "all failed: connection refused" in gave_up.err) == (1, True)


def test_errors_are_told_without_the_secrets_of_workers(textbench, two_nodes, monkeypatch):
    where = ("--scenario", "frozen-lake", "--episodes", 12, "--quiet", "--ray", two_nodes)
    buggy = textbench("run", "--agent", f"{PLAYERS}:Buggy", *where)
    assert buggy.code == 1
    assert "ZeroDivisionError: in the player's own code (on the worker " in buggy.err
    assert "players_for_tests.py" in buggy.err  # the worker's traceback, for the author
    told = textbench("run", "--agent", f"{PLAYERS}:TellsSecrets", *where, "--out", "told")
    assert told.code == 0, told.err
    text = Path("told/episodes.jsonl").read_text()
    assert "[redacted]" in text
    assert "worker-secret" not in text
    another = textbench("run", "--agent", f"{PLAYERS}:OfThisMachine", *where)
    refused(another, "textbench: on the worker ", "settings, process is")
    fatal = textbench("run", "--agent", f"{PLAYERS}:Fatal", *where)
    assert fatal.code == 1
    assert "workers died over the same" in fatal.err


def test_no_room_and_no_cluster(textbench, two_nodes):
    where = ("--agent", "random", "--scenario", "frozen-lake", "--episodes", 2)
    done = textbench("run", *where, "--ray", two_nodes, "--ray-gpus", 1)
    assert done.code == 2
    assert done.err.splitlines()[-1] == (
        "textbench: --ray: no machine of the cluster has room for a worker: one takes 1 CPU, 1 GPU, and all machines "
        "together have 2 CPU, 0 GPU"
    )
    refused(textbench("run", *where, "--ray", "127.0.0.1:9"), "there is no Ray cluster at '127.0.0.1:9'")
