"""LoRA in the lean forward pass: beside a large model's weights, added to a copy of a small one's."""

from typing import Any

import pytest
import torch

from agents.models.local.decoding.lean_decoder import LeanDecoder
from agents.models.local.forward import llama_forward
from agents.models.local.forward.llama_forward import read_weights
from agents.models.local.transformers import TransformersModel
from tests.agents.models.local.test_transformers import OLD_NAME, TEXT, make_model, make_tokenizer

peft = pytest.importorskip("peft")
pytestmark = OLD_NAME


def with_adapters(kind: str, tokenizer: Any, *, names: tuple[str, ...] = ("default",)) -> Any:
    model = make_model(kind, tokenizer)
    settings = [peft.LoraConfig(r=2 + n, lora_alpha=3, target_modules="all-linear") for n in range(len(names))]
    model = peft.get_peft_model(model, settings[0], adapter_name=names[0])
    for name, setting in zip(names[1:], settings[1:], strict=True):
        model.add_adapter(name, setting)
    model.base_model.set_adapter(list(names))
    torch.manual_seed(1)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.2)
    return model.eval()


def lean_logits(model: Any, ids: torch.Tensor, fuse: bool) -> torch.Tensor:
    packing, weights = llama_forward.Packing([len(ids)], ids.device), read_weights(model, fuse=fuse)
    attend = llama_forward.CausalAttention(packing)
    return llama_forward.logits(weights, llama_forward.hidden_states(weights, ids, packing.positions, attend))


@pytest.mark.parametrize("names", [("default",), ("default", "second")])
@pytest.mark.parametrize("kind", ["tied", "qwen2", "qwen3"])
def test_factors_beside_the_weights_give_what_the_merged_weights_give(kind, names):
    tokenizer = make_tokenizer()
    model = with_adapters(kind, tokenizer, names=names)
    ids = torch.tensor(tokenizer(TEXT[0])["input_ids"])
    decoder = TransformersModel(model, tokenizer).decoder
    assert isinstance(decoder, LeanDecoder)
    with torch.no_grad():
        wanted = model(input_ids=ids[None]).logits[0]
        torch.testing.assert_close(decoder.start([tuple(ids.tolist())], [0])[1][0], wanted[-1], atol=1e-4, rtol=1e-4)
        with model.disable_adapter():  # noticed although no parameter changed
            plain = model(input_ids=ids[None]).logits[0]
            assert (plain - wanted).abs().max() > 0.1
            got = decoder.start([tuple(ids.tolist())], [0])[1][0]
            torch.testing.assert_close(got, plain[-1], atol=1e-4, rtol=1e-4)
        for fuse in (True, False):
            torch.testing.assert_close(lean_logits(model, ids, fuse), wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", ["tied", "qwen2"])
@pytest.mark.parametrize("fuse", [True, False])
def test_gradients_of_factors_equal_those_of_pefts_own_layers(kind, fuse):
    tokenizer = make_tokenizer()
    model = with_adapters(kind, tokenizer)
    ids = torch.tensor(tokenizer(TEXT[0])["input_ids"])
    slope = torch.randn(len(ids), len(tokenizer), generator=torch.Generator().manual_seed(2))
    found = []
    for lean in (True, False):
        model.zero_grad()
        logits = lean_logits(model, ids, fuse) if lean else model(input_ids=ids[None]).logits[0]
        (logits * slope).sum().backward()
        found.append({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})
    ours, theirs = found
    assert ours.keys() == theirs.keys()
    assert all("lora_" in name for name in ours)
    for name, gradient in theirs.items():
        torch.testing.assert_close(ours[name], gradient, atol=2e-5 * float(gradient.abs().max()), rtol=1e-3, msg=name)
