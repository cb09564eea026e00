"""Rollouts sampled elsewhere: an engine that is sent new weights, adapters merged."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from agents.models.base import Decoding
from agents.models.local.forward.llama_forward import why_not
from agents.msgrpo.engines.live import CopyEngine, merged_weights
from agents.msgrpo.errors import RolloutError, UnusableModelError
from agents.msgrpo.learner.prepare import prepare_model
from agents.turn import Message, Turn
from tests.agents.msgrpo.runs import SHORT

CONFIG = replace(SHORT, iterations=3, learning_rate=1e-2)


def test_merged_weights_are_those_of_the_adapted_model(tokenizer, make_llama):
    config = replace(CONFIG, lora_rank=2, lora_targets=("q_proj", "down_proj"))
    model: Any = prepare_model(make_llama(len(tokenizer)), tokenizer, config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_()
    before = {name: p.clone() for name, p in model.named_parameters()}
    engine = CopyEngine(model, tokenizer, torch.float32)
    engine.update_weights(merged_weights(model), 1)
    assert all(torch.equal(before[name], p) for name, p in model.named_parameters())
    (got,) = engine.generate([(Message("user", "left"),)], Decoding(temperature=1.0, max_tokens=3), [(0,)])
    ids = torch.tensor([[*got.prompt_ids, *got.response_ids]])  # type: ignore[misc]
    wanted = torch.log_softmax(model(ids).logits[0], -1)
    for t, (token, logp) in enumerate(zip(got.response_ids, got.logprobs, strict=True)):  # type: ignore[arg-type]
        assert wanted[len(got.prompt_ids) - 1 + t, token].item() == pytest.approx(logp, abs=1e-4)  # type: ignore[arg-type]


def adapted(model: Any, **settings: Any) -> Any:
    """The model with an adapter of random weights and, in DoRA, of magnitudes that aren't the base's."""
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(
        r=2, target_modules=["q_proj", "down_proj"], init_lora_weights=False, task_type="CAUSAL_LM", **settings
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peft warns of what can't be merged later
        made = peft.get_peft_model(model, config)
    torch.manual_seed(1)
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if "magnitude" in name:
                parameter.mul_(1 + torch.rand_like(parameter))
    return made.eval()


@pytest.mark.parametrize("settings", [{"use_dora": True}, {"lora_bias": True}, {"use_rslora": True}], ids=str)
def test_adapters_that_do_more_than_add_a_matrix_are_sampled_as_peft_computes_them(settings, tokenizer, make_llama):
    model = adapted(make_llama(len(tokenizer), attention_bias=True, mlp_bias=True), **settings)
    ids = torch.arange(8)[None]
    with torch.no_grad():
        wanted = torch.log_softmax(model(ids).logits[0], -1)
        with model.disable_adapter():
            assert (torch.log_softmax(model(ids).logits[0], -1) - wanted).abs().max() > 0.01
    before = {name: p.clone() for name, p in model.named_parameters()}
    engine = CopyEngine(model, tokenizer, torch.float32)
    engine.update_weights(merged_weights(model), 1)
    with torch.no_grad():
        got = torch.log_softmax(engine.local_model.model(ids).logits[0], -1)
        again = torch.log_softmax(model(ids).logits[0], -1)
    torch.testing.assert_close(got, wanted, atol=1e-5, rtol=0)
    assert all(torch.equal(before[name], p) for name, p in model.named_parameters())
    torch.testing.assert_close(again, wanted, atol=0, rtol=0)  # nothing of the merging stays behind


@pytest.mark.parametrize(
    ("settings", "bias"), [({"lora_bias": True}, False), ({"alora_invocation_tokens": [1, 2]}, True)], ids=str
)
def test_adapters_that_cannot_be_merged_are_refused(settings, bias, tokenizer, make_llama):
    model = adapted(make_llama(len(tokenizer), attention_bias=bias, mlp_bias=bias), **settings)
    assert why_not(model) is not None, "the lean forward pass would leave out what it does"
    with pytest.raises(UnusableModelError, match=r"the adapter 'default' of .*_proj can't be merged into its weights"):
        list(merged_weights(model))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda name: name.replace("q_proj", "w_q"), r"no parameter '.*w_q\.weight' \(did you mean '.*_proj\.weight'"),
        (lambda name: None if name.endswith("norm.weight") else name, r"no new weights came for .*norm\.weight"),
    ],
)
def test_a_copy_refuses_weights_that_are_not_its_own(change, words, tokenizer, make_llama):
    model = make_llama(len(tokenizer))
    engine = CopyEngine(model, tokenizer, torch.float32)
    weights = [(change(name), tensor) for name, tensor in merged_weights(model)]
    with pytest.raises(ValueError, match=words):
        engine.update_weights(((name, tensor) for name, tensor in weights if name is not None), 1)


class Saying:
    name = "saying"

    def __init__(self, turn: Turn) -> None:
        self.turn = turn

    def generate(self, prompts: Sequence[Any], decoding: Any, seeds: Any) -> list[Turn]:
        return [self.turn for _ in prompts]

    def update_weights(self, weights: Any, version: int) -> None:
        list(weights)


@pytest.mark.parametrize(
    ("turn", "words"), [(Turn("left"), "no token ids"), (Turn("", error="connection refused"), "connection refused")]
)
def test_an_engine_that_fails_or_has_no_token_ids_is_refused_before_the_first_episode(make_trainer, turn, words):
    with pytest.raises(RolloutError, match=words):
        make_trainer(CONFIG, engine=Saying(turn))
