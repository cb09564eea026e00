"""vLLM inside the workers of a Ray cluster: whole episodes by engines on other nodes, with the learner's weights."""

from dataclasses import replace

import pytest

from tests.engines.conftest import IN_PROCESS
from tests.engines.test_vllm_in_process import CONFIG, make_trainer
from tests.ray_cluster import start_cluster, stop_cluster, wait_until, worker_processes

pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("ignore")]  # of vLLM and what it imports


@pytest.fixture(scope="module")
def two_nodes(vllm):
    """The address of a cluster of two machines with one core each; its workers have this process' environment."""
    cluster = start_cluster(1, 1)
    yield cluster.address
    stop_cluster(cluster)


def test_workers_sample_with_the_learners_weights(two_nodes):
    options = {"address": two_nodes, "sampler": "vllm", "sampler_options": {"llm": IN_PROCESS}}
    there = make_trainer(replace(CONFIG, engine="ray", engine_options=options))
    try:
        history = there.train()
    finally:
        there.close()
    assert there.source.version >= 1, "no update was made, so no worker took weights over"
    for metrics in history:
        assert metrics["lag"] == 0
        if metrics["skipped"]:
            continue
        assert metrics["mismatch_max"] < 1e-4
        assert metrics["importance_mean"] == pytest.approx(1, abs=1e-4)
    here = make_trainer(CONFIG)
    assert here.train()[0]["return"] == pytest.approx(history[0]["return"])  # equal seeds, equal engines
    wait_until(lambda: not worker_processes())
