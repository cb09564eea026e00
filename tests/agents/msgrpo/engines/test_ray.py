"""Rollouts by the workers of a Ray cluster: the same training, whatever happens to the workers."""

import threading
import time
from typing import Any

import pytest
import torch

from agents.msgrpo import ConfigError, MSGRPOConfig, MSGRPOTrainer, RolloutError, load
from tests.agents.msgrpo.engines.test_live import Elsewhere
from tests.ray_cluster import start_cluster, stop_cluster, wait_until, worker_processes

pytestmark = pytest.mark.engines

SETTINGS: dict[str, Any] = {
    "model": "tiny", "device": "cpu", "threads": 1, "scenarios": ("frozen-lake",), "groups": 2, "group_size": 4,
    "iterations": 2, "response_mode": "think", "max_response_tokens": 96, "learning_rate": 1e-3, "minibatches": 1,
    "eval_every": 0, "samples_every": 0, "seed": 3,
}  # fmt: skip


@pytest.fixture(scope="module")
def two_nodes():
    cluster = start_cluster(1, 1)
    yield cluster.address
    stop_cluster(cluster)


def trained(made: Any = None, **settings: Any) -> MSGRPOTrainer:
    config = MSGRPOConfig(**{**SETTINGS, **settings})
    model, tokenizer = load(config)
    given = None if made is None else made(model, tokenizer)
    trainer = MSGRPOTrainer(model, tokenizer, config=config, engine=given, quiet=True)
    try:
        trainer.train()
    finally:
        trainer.close()
    assert not any(metrics["skipped"] for metrics in trainer.history)
    return trainer


def on_cluster(address: str, **options: Any) -> dict[str, Any]:
    return {"engine": "ray", "engine_options": {"address": address, **options}}


def parameters_of(trainer: MSGRPOTrainer) -> list[torch.Tensor]:
    return [parameter.detach() for parameter in trainer.model.parameters()]


def told(trainer: MSGRPOTrainer) -> list[tuple[float, float]]:
    return [(metrics["return"], metrics["response_tokens"]) for metrics in trainer.history]


def largest_difference(one: MSGRPOTrainer, two: MSGRPOTrainer) -> float:
    pairs = zip(parameters_of(one), parameters_of(two), strict=True)
    return max((a - b).abs().max().item() for a, b in pairs)


def test_equal_weights_to_those_of_one_process(two_nodes):
    """One worker has the same batches, so its arithmetic is the same to the last bit; two round differently."""
    here = trained(Elsewhere)
    one = trained(**on_cluster(two_nodes, workers=1))
    assert told(one) == told(here)
    assert largest_difference(one, here) == 0.0
    assert [metrics["weights_version"] for metrics in one.history] == [1, 2]
    two = trained(**on_cluster(two_nodes))
    assert told(two) == told(here)
    # Adam's first steps are the signs of gradients, and those of gradients near zero turn with the rounding
    assert largest_difference(two, here) < 2 * 2 * SETTINGS["learning_rate"]


def test_a_worker_is_killed_in_the_middle_of_an_iteration(two_nodes):
    killed: list[int] = []

    def kill_one() -> None:
        wait_until(lambda: len(worker_processes()) == 2)
        time.sleep(0.3)
        victim = worker_processes()[-1]
        victim.kill()
        killed.append(victim.pid)

    here = trained(Elsewhere, groups=4, group_size=8, iterations=1)
    thread = threading.Thread(target=kill_one)
    thread.start()
    there = trained(**on_cluster(two_nodes), groups=4, group_size=8, iterations=1)
    thread.join()
    assert killed
    assert told(there) == told(here)


def test_failures_are_told(two_nodes):
    with pytest.raises(ConfigError, match="no machine of the cluster has room for a worker"):
        trained(**on_cluster(two_nodes, gpus=1.0))
    with pytest.raises(ConfigError, match="there is no Ray cluster"):
        trained(**on_cluster("127.0.0.1:9"))
    with pytest.raises(RolloutError, match="on the worker"):
        trained(**on_cluster(two_nodes, sampler="vllm", sampler_options={"llm": {"no_such": 1}}))
