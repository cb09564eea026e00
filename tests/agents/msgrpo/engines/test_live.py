"""Rollouts sampled elsewhere: an engine that is sent new weights, adapters merged."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from agents.models.base import Decoding
from agents.models.local.forward.llama_forward import why_not
from agents.msgrpo import RolloutError, UnusableModelError
from agents.msgrpo.engines.engine import Weights
from agents.msgrpo.engines.live import CopyEngine, merged_weights
from agents.turn import Message, Turn
from tests.agents.msgrpo.runs import SHORT

CONFIG = replace(SHORT, iterations=3, learning_rate=1e-2)


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


@pytest.mark.parametrize("settings", [{}, {"use_dora": True}, {"lora_bias": True}], ids=str)
def test_an_adapter_is_merged_as_peft_computes_it_and_the_copy_samples_from_that(settings, tokenizer, make_llama):
    model = adapted(make_llama(len(tokenizer), attention_bias=True, mlp_bias=True), **settings)
    before, engine = (
        {name: p.clone() for name, p in model.named_parameters()},
        CopyEngine(model, tokenizer, torch.float32),
    )
    engine.update_weights(merged_weights(model), 1)
    (got,) = engine.generate([(Message("user", "left"),)], Decoding(temperature=1.0, max_tokens=3), [(0,)])
    ids, places = torch.tensor([[*got.prompt_ids, *got.response_ids]]), torch.arange(-len(got.response_ids), 0)
    with torch.no_grad():
        scores = model(ids).logits[0].log_softmax(-1)
        with model.disable_adapter():
            assert (model(ids).logits[0].log_softmax(-1) - scores).abs().max() > 0.01
    wanted = scores[places - 1, ids[0, places]]
    torch.testing.assert_close(torch.tensor(got.logprobs, dtype=torch.float32), wanted, atol=1e-4, rtol=0)
    assert all(torch.equal(before[name], p) for name, p in model.named_parameters())  # nothing of the merging stays


def test_adapters_that_cannot_be_merged_are_refused(tokenizer, make_llama):
    model = adapted(make_llama(len(tokenizer)), lora_bias=True)  # the model has no biases
    assert why_not(model) is not None, "the lean forward pass would leave out what it does"
    with pytest.raises(UnusableModelError, match=r"the adapter 'default' of .*_proj can't be merged into its weights"):
        list(merged_weights(model))


def test_a_copy_refuses_weights_that_are_not_its_own(tokenizer, make_llama):
    engine = CopyEngine(make_llama(len(tokenizer)), tokenizer, torch.float32)
    weights = dict(make_llama(len(tokenizer)).named_parameters())
    renamed = ((name.replace("q_proj", "w_q"), tensor) for name, tensor in weights.items())
    with pytest.raises(ValueError, match=r"no parameter '.*w_q\.weight' \(did you mean '.*_proj\.weight'"):
        engine.update_weights(renamed, 1)
    with pytest.raises(ValueError, match=r"no new weights came for .*norm\.weight"):
        engine.update_weights(((name, each) for name, each in weights.items() if not name.endswith("norm.weight")), 1)


class Saying:
    """An engine that says the same to everything."""

    name = "saying"

    def __init__(self, turn: Turn) -> None:
        self.turn = turn

    def generate(self, prompts: Sequence[Any], *_: Any) -> list[Turn]:
        return [self.turn] * len(prompts)

    def update_weights(self, weights: Any, version: int) -> None:
        list(weights)


@pytest.mark.parametrize(
    ("turn", "words"), [(Turn("left"), "no token ids"), (Turn("", error="connection refused"), "connection refused")]
)
def test_an_engine_that_fails_or_has_no_token_ids_is_refused_before_the_first_episode(make_trainer, turn, words):
    with pytest.raises(RolloutError, match=words):
        make_trainer(CONFIG, engine=Saying(turn))


class Elsewhere:
    """Plays with a copy of the weights, as an engine on another machine would; ``updates`` are those that arrived.

    Updates of versions later than ``deaf_after`` change the label and not the weights.
    """

    name = "elsewhere"

    def __init__(self, model: Any, tokenizer: Any, *, deaf_after: int | None = None) -> None:
        self.copy = CopyEngine(model, tokenizer, torch.float32)
        self.forget, self.generate = self.copy.forget, self.copy.generate
        self.updates: list[int] = []
        self.deaf_after = deaf_after

    def update_weights(self, weights: Weights, version: int) -> None:
        self.updates.append(version)
        if self.deaf_after is not None and version > self.deaf_after:
            self.copy.version = version
        else:
            self.copy.update_weights(weights, version)
