"""vLLM in this process, on a CPU: as a player, as the engine of a run, in Ray workers, and as a sender of weights."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from agents.models.local.transformers import TransformersModel
from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer
from agents.msgrpo.engines.live import merged_weights
from agents.msgrpo.engines.vllm.servers import _Source
from agents.msgrpo.errors import RolloutError
from tests.engines import beside
from tests.engines.conftest import IN_PROCESS, WEIGHTS
from tests.ray_cluster import start_cluster, stop_cluster, wait_until, worker_processes

pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("ignore")]  # of vLLM and what it imports

CONFIG = MSGRPOConfig(
    groups=2, group_size=6, iterations=3, max_response_tokens=128, temperature=1.25, learning_rate=3e-4, minibatches=1,
    eval_every=0, samples_every=0, engine="vllm", engine_options={"llm": IN_PROCESS},
)  # fmt: skip


@pytest.mark.parametrize(("name", "scenario"), [("tiny-lake", "frozen-lake"), ("tiny-snake", "snake")])
def test_the_player_answers_as_transformers_does(vllm, name, scenario):
    from agents.models.vllm import VLLMModel

    theirs = VLLMModel(str(WEIGHTS / name), engine=IN_PROCESS)
    ours = TransformersModel.from_pretrained(WEIGHTS / name, device="cpu")
    greedy = [beside.play(model, scenario, 4, 0.0) for model in (theirs, ours)]
    assert beside.responses(greedy[0]) == beside.responses(greedy[1])
    sampled = beside.play(theirs, scenario, 4, 0.7)
    assert beside.worst_difference(sampled, ours.model, 0.7) < beside.LOGPROBS
    assert beside.responses(beside.play(theirs, scenario, 4, 0.7)) == beside.responses(sampled)  # seeds hold


def test_training_samples_with_the_learners_weights(vllm, monkeypatch):
    """Tied embeddings and all; and where the output layer isn't packed again, the canary stops the run."""
    trainer = make_trainer(CONFIG)
    history = trainer.train()
    live = make_trainer(replace(CONFIG, engine="live", engine_options={}, iterations=1)).train()
    assert abs(history[0]["return"] - live[0]["return"]) < 0.5  # the same tasks; other random numbers
    for metrics in history:
        assert metrics["lag"] == 0
        if not metrics["skipped"]:
            assert metrics["mismatch_max"] < 1e-4
            assert metrics["importance_mean"] == pytest.approx(1, abs=1e-4)
    assert trainer.source.version >= 1, "no update was made, so nothing was shown"
    assert trainer.source._check.difference < beside.LOGPROBS  # type: ignore[union-attr]

    from agents.msgrpo.engines.vllm import in_process

    monkeypatch.setattr(in_process, "renew_output_layer", lambda model: None)
    beside.disturb(trainer.model)
    trainer.source.renew(trainer.source.version + 1)
    with pytest.raises(RolloutError, match=r"doesn't have the learner's weights.*tied to its embedding"):
        trainer.source.settle()


def make_trainer(config: MSGRPOConfig) -> MSGRPOTrainer:
    made = TransformersModel.from_pretrained(WEIGHTS / "tiny-lake", device="cpu")
    return MSGRPOTrainer(made.model, made.tokenizer, "frozen-lake", config, quiet=True)


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


class Client:
    """What vLLM's sender asks of a server, noted."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def init_weight_transfer_engine(self, info: dict[str, Any]) -> None:
        self.calls.append("init")

    def start_weight_update(self) -> None:
        self.calls.append("start")

    def update_weights(self, info: dict[str, Any]) -> None:
        self.calls.append(info)

    def finish_weight_update(self, version: str | None = None) -> None:
        self.calls.append("finish")


def test_the_sender_takes_our_weights(vllm, monkeypatch):
    """What is declared is what is sent, in the same order: vLLM's own check, which a broadcast relies on."""
    from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo, NCCLTrainerWeightTransferEngine

    model = TransformersModel.from_pretrained(WEIGHTS / "tiny-lake", device="cpu").model
    source, client, sent = _Source(list(merged_weights(model))), Client(), dict[str, torch.Tensor]()
    engine = NCCLTrainerWeightTransferEngine(client=client, source=source)
    monkeypatch.setattr(engine, "_broadcast", lambda source, meta: sent.update(engine._checked_iter(source, meta)))
    monkeypatch.setattr(engine, "_post_send_sync", lambda: None)
    engine.send_weights()
    start, info, finish = client.calls
    assert (start, finish) == ("start", "finish")
    assert info["names"] == list(sent) == [name for name, _ in model.named_parameters()]
    assert info["shapes"] == [list(parameter.shape) for parameter in model.parameters()]
    assert set(info["dtype_names"]) == {"float32"}
    assert NCCLTrainerInitInfo("host", 1, 2, rank=0).is_sender  # as the updater makes it
