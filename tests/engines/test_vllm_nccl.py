"""Weights from GPU to GPU, as far as a machine without one goes: vLLM's own sender, up to the broadcast itself."""

from typing import Any

import pytest
import torch

from agents.models.local.transformers import TransformersModel
from agents.msgrpo.engines.live import merged_weights
from agents.msgrpo.engines.vllm.servers import _Source
from tests.engines.conftest import WEIGHTS

pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("ignore")]


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
