"""Drafted answers against decoding token by token, whose draws they have to be."""

from typing import Any

import pytest
import torch

from agents.models.answers import LegalAnswers
from agents.models.base import Decoding
from agents.models.local.decoding import lean_decoder
from agents.models.local.decoding.drafts import sample_drafted
from agents.models.local.decoding.lean_decoder import LeanBatch
from agents.models.local.decoding.sampler import Sampled, sample
from agents.models.local.transformers import TransformersModel
from tests.agents.models.local.test_transformers import OLD_NAME, make_model, make_tokenizer

WAYS = ("left", "down", "right", "up")
NAMES = (WAYS, ("up",), ("e2e4", "e2e3", "d2d4"), WAYS, ("left", "leftmost"), WAYS[:2])
LIMITS = (60, 60, 40, 13, 60, 60)  # with 13 tokens left not every way to write an answer is short enough


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer()


def both(model: Any, tokenizer: Any, decoding: Decoding, rows: int = 30) -> tuple[list[Sampled], list[Sampled]]:
    """Return answers drafted and decoded token by token, to prompts of which some are equal and others long."""
    player = TransformersModel(model, tokenizer)
    prompts = [tuple(range(3 + row % 5)) + (9,) * (row % 3 * 4) for row in range(rows)]
    seeds = [(row, 7) for row in range(rows)]
    limits = [LIMITS[row % len(LIMITS)] for row in range(rows)]
    rules = [player.vocabulary.rules(LegalAnswers(NAMES[row % len(NAMES)])) for row in range(rows)]
    check = player.stop_check(decoding.stop)
    with torch.inference_mode():
        wanted = sample(player.decoder, prompts, decoding, seeds, check, limits, rules=rules)
        return sample_drafted(player.decoder, prompts, decoding, seeds, limits, rules), wanted


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize(("temperature", "top_p"), [(0.0, 1.0), (0.4, 1.0), (3.0, 0.9)])
def test_the_draws_are_those_of_decoding_token_by_token(kind, kept, temperature, top_p, tokenizer, monkeypatch):
    monkeypatch.setattr(lean_decoder, "_KEEP_FROM", 0 if kept else 10**12)
    drafted, wanted = both(make_model(kind, tokenizer), tokenizer, Decoding(temperature, top_p))
    check_equal(drafted, wanted)
    assert len({each.ids for each in drafted}) > 6


def check_equal(drafted: list[Sampled], wanted: list[Sampled]) -> None:
    for row, (mine, theirs) in enumerate(zip(drafted, wanted, strict=True)):
        assert mine._replace(logprobs=()) == theirs._replace(logprobs=()), row
        assert mine.logprobs == pytest.approx(theirs.logprobs, abs=1e-5)


@OLD_NAME
def test_an_adapter_on_the_head_is_part_of_the_logits(tokenizer, monkeypatch):
    peft = pytest.importorskip("peft")
    monkeypatch.setattr("agents.models.local.forward.llama_forward._FUSE_BELOW_BYTES", 0)  # it stays beside the head
    model = peft.get_peft_model(make_model("llama", tokenizer), peft.LoraConfig(r=4, target_modules=["lm_head"]))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(0, 0.5)
    check_equal(*both(model.eval(), tokenizer, Decoding(1.0)))


def test_half_precision_hides_what_is_not_filled(tokenizer):
    drafted, wanted = both(make_model("llama", tokenizer).bfloat16(), tokenizer, Decoding(1.0))
    same = [mine.ids == theirs.ids for mine, theirs in zip(drafted, wanted, strict=True)]
    assert sum(same) > 0.8 * len(same)  # products of other sizes round otherwise


def test_a_likely_answer_takes_one_pass_behind_its_prompt(tokenizer, monkeypatch):
    model = make_model("llama", tokenizer)
    player, passes, append = TransformersModel(model, tokenizer), [], LeanBatch.append
    with torch.no_grad():  # the longer a token, the likelier
        model.model.embed_tokens.weight[:, 0] = 1e4
        model.lm_head.weight.copy_(torch.zeros_like(model.lm_head.weight))
        model.lm_head.weight[:, 0] = torch.tensor([len(text) for text in player.vocabulary.texts])

    def counted(batch: LeanBatch, runs: Any, dropped: Any) -> Any:
        passes.append([player.decode(run) for run in runs])
        return append(batch, runs, dropped)

    monkeypatch.setattr(LeanBatch, "append", counted)
    rules = [player.vocabulary.rules(LegalAnswers(("left", "down")))] * 8
    seeds = [(row,) for row in range(8)]
    with torch.inference_mode():
        answers = sample_drafted(player.decoder, [(1, 2)] * 8, Decoding(1.0), seeds, [30] * 8, rules)
    texts = [player.decode(answer.ids) for answer in answers]
    assert set(texts) == {"<action>left</action>", "<action>down</action>"}
    # the last two tokens need none: </ is verified, and the likely token behind it as well
    assert passes == [[text.removeprefix("<action>").removesuffix("action>") for text in texts]]


def test_an_answer_that_is_wholly_forced_takes_no_pass(tokenizer):
    player = TransformersModel(make_model("llama", tokenizer), tokenizer)
    rules = player.vocabulary.rules(LegalAnswers(("up",), begun="<action>up</action"))
    (answer,) = sample_drafted(player.decoder, [(1, 2)], Decoding(1.0), [(0,)], [30], [rules])
    assert (player.decode(answer.ids), answer.logprobs, answer.stopped) == (">", (0.0,), True)
    assert player.decoder.prefill_tokens == 0
