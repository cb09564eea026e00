"""What fast decoding costs, by the counters of the checks on GPUs: waits of the host, copies of weights."""

import pytest
import torch

from agents.models.local.forward import llama_forward
from agents.models.local.forward.llama_forward import read_weights
from agents.models.local.transformers import TransformersModel
from research.perf.gpu_checks.machine import bytes_beside, count_synchronisations
from tests.agents.models.local.test_decoding import PROMPTS, responses
from tests.agents.models.local.test_transformers import OLD_NAME, make_model, make_tokenizer, with_adapters


def waits(player: TransformersModel, tokens: int) -> dict[str, int]:
    """What would make the host wait for a GPU while it makes ``tokens`` tokens for every row."""
    with count_synchronisations(torch.device("cpu")) as counts:
        rows = responses(player, [tokens] * len(PROMPTS), 8, ("zzzzzz",))
    assert [len(row.ids) for row in rows] == [tokens] * len(PROMPTS)
    return dict(counts)


@pytest.mark.slow
def test_a_device_is_waited_for_once_in_eight_tokens():
    tokenizer = make_tokenizer()
    player = TransformersModel(make_model("tied", tokenizer), tokenizer)
    player.eos_ids = frozenset()
    waits(player, 8)  # what is made once for a model
    few, many = waits(player, 16), waits(player, 96)
    assert few["cpu"] == 3  # after 4, 8 and 16 tokens; after 1 and 2 there is one step to look at, which a CPU has
    assert sum(many.values()) - sum(few.values()) == many["cpu"] - few["cpu"] == (96 - 16) // 8


@OLD_NAME
def test_a_large_models_weights_are_not_copied_to_sample_with_an_adapter(monkeypatch):
    tokenizer = make_tokenizer()
    model = with_adapters("qwen2", tokenizer)
    whole = sum(p.nbytes for layer in model.get_base_model().model.layers for p in layer.parameters() if p.dim() == 2)
    factors = sum(p.nbytes for name, p in model.named_parameters() if "lora_" in name)
    with torch.no_grad():
        assert bytes_beside(read_weights(model), model) > 0.9 * (whole - factors)
        monkeypatch.setattr(llama_forward, "_FUSE_BELOW_BYTES", 0)
        assert bytes_beside(read_weights(model), model) == factors
