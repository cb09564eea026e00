"""Hybrid and state-space models: played right, or refused by name before anything is played."""

from typing import Any

import pytest
import torch

from agents.models.base import Decoding
from agents.models.local.decoding.generic_decoder import GenericDecoder
from agents.models.local.transformers import TransformersModel
from agents.turn import Message
from tests.agents.models.local.hybrids import PLAYABLE, UNPLAYABLE, make_hybrid
from tests.agents.models.local.test_transformers import make_tokenizer


@pytest.mark.parametrize("kind", PLAYABLE)
def test_a_hybrids_rows_are_continued_as_if_each_were_alone(kind):
    tokenizer = make_tokenizer()
    model = make_hybrid(kind, len(tokenizer))
    player = TransformersModel(model, tokenizer)
    player.check()
    prompts = [(Message("user", text),) for text in ("You are at (1, 2).", "up", "You are at (1, 2). up, right")]
    decoding = Decoding(
        temperature=1.0, max_tokens=20, stop=tuple("aeiou 12")
    )  # rows end at different times and leave the batch
    together = player.generate(prompts, decoding, [(k,) for k in range(3)])
    assert len({len(completion.response_ids or ()) for completion in together}) > 1
    for completion in together:
        ids = [*(completion.prompt_ids or ()), *(completion.response_ids or ())]
        with torch.no_grad():
            scores = model(torch.tensor([ids])).logits[0].log_softmax(-1)
        begin = len(completion.prompt_ids or ())
        wanted = [scores[place - 1, ids[place]].item() for place in range(begin, len(ids))]
        assert completion.logprobs == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("kind", UNPLAYABLE)
def test_a_model_that_cannot_be_sampled_is_refused_by_name(kind, tmp_path):
    tokenizer = make_tokenizer()
    model = make_hybrid(kind, len(tokenizer))
    with pytest.raises(ValueError, match=rf"{kind}ForCausalLM can't be sampled .* serve it with vLLM"):
        TransformersModel(model, tokenizer).check()
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=f"{kind}ForCausalLM can't be sampled"):
        TransformersModel.from_pretrained(tmp_path)


def test_a_cache_that_forgets_is_noticed():
    """The comparison itself: a decoder that always begins anew gives other log-probabilities."""

    class Forgetful(GenericDecoder):
        def forward(self, ids: Any, mask: Any, positions: Any, cache: Any) -> tuple[Any, Any]:
            return super().forward(ids, mask[:, -ids.shape[1] :], positions, None)

    model = make_hybrid("Jamba", 50)
    GenericDecoder(model).check()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    with pytest.raises(ValueError, match="its cache changes log-probabilities"):
        Forgetful(model).check()
