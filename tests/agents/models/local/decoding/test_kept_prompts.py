"""What prompts of several calls share is computed once and changes nothing; on small models, which else don't keep."""

import numpy as np
import pytest
import torch

from agents.models.local.decoding import kept_prompts, lean_decoder
from agents.models.local.decoding.batching import bytes_per_token
from agents.models.local.decoding.lean_decoder import LeanDecoder
from tests.agents.models.local.test_transformers import (
    LEAN,
    check_decoder,
    make_model,
    make_tokenizer,
    next_logits,
    test_half_precision_decodes_as_the_model_does,
    test_what_is_kept_between_calls_is_dropped_when_the_weights_change,
)

__all__ = [  # these hold with kept prompts as well
    "test_half_precision_decodes_as_the_model_does",
    "test_what_is_kept_between_calls_is_dropped_when_the_weights_change",
]


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer()


@pytest.fixture(autouse=True)
def _keep(monkeypatch):
    monkeypatch.setattr(lean_decoder, "_KEEP_FROM", 0)


@pytest.mark.parametrize("kind", LEAN)  # the generic decoder keeps none
def test_decoders_give_the_models_own_logits_at_every_step(kind, tokenizer):
    check_decoder(kind, tokenizer)


def test_the_tree_of_all_prompts_is_computed_once(tokenizer):
    model = make_model("llama", tokenizer)
    decoder = LeanDecoder(model)
    rules, one, two = tuple(range(40)), (50, 51, 52), (60, 61)
    calls = [
        ([(*rules, *one, 1), (*rules, *two, 1)], 40 + 4 + 3),
        ([(*rules, *one, 2), (*rules, 70), (*rules, *one, 3)], 3),  # a state again: only what follows is new
        ([(*rules, *two, 1)], 1),  # wholly known: its last token gives the hidden state
        ([rules, (99,)], 1 + 1),
    ]
    for prompts, new in calls:
        before = decoder.prefill_tokens
        with torch.no_grad():
            _, logits = decoder.start(prompts, range(len(prompts)))
        assert decoder.prefill_tokens - before == new
        wanted = torch.stack([next_logits(model, prompt) for prompt in prompts])
        torch.testing.assert_close(logits, wanted, rtol=1e-4, atol=1e-4)


def test_random_prompts_in_many_calls_and_passes(tokenizer, monkeypatch):
    monkeypatch.setattr(kept_prompts, "_PASS_TOKENS", 50)
    monkeypatch.setattr(kept_prompts, "QUERIES", 7)
    model = make_model("qwen3", tokenizer)
    decoder = LeanDecoder(model)
    rng = np.random.default_rng(0)
    for _ in range(6):
        prompts = list({tuple(rng.integers(3, size=rng.integers(1, 40)).tolist()) for _ in range(12)})
        with torch.no_grad():
            batch, _ = decoder.start(prompts, range(len(prompts)))
            tokens = rng.integers(3, size=len(prompts))
            logits = batch.step(torch.from_numpy(tokens))
        grown = [(*prompt, int(token)) for prompt, token in zip(prompts, tokens, strict=True)]
        torch.testing.assert_close(
            logits, torch.stack([next_logits(model, ids) for ids in grown]), rtol=1e-3, atol=1e-3
        )


def test_what_is_kept_is_bounded(tokenizer, monkeypatch):
    decoder = LeanDecoder(make_model("llama", tokenizer))
    monkeypatch.setattr(kept_prompts, "_KEPT_BYTES", 60 * bytes_per_token(decoder.model))
    for first in range(8):
        decoder.start([(first, *range(20, 50))], [0])
        assert decoder._kept is not None
        assert decoder._kept[1]._used <= 3 * 31
