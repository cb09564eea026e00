"""Models that reason: small Qwen3 models that know one text by heart, with the logic of published chat templates."""

from functools import cache
from typing import Any

import pytest
import torch

from agents import Decoding
from agents.models.local.templates import Thinking
from agents.models.local.transformers import CLOSING, TransformersModel
from agents.turn import Message, TokenSet
from tests.tiny_models import byte_level_bpe, teach

transformers = pytest.importorskip("transformers")

HYBRID = (
    "{% for m in messages %}{% if m['role'] == 'assistant' %}{% set said = m['content'] %}{% set thought = '' %}"
    "{% if '</think>' in said %}{% set thought = said.split('</think>')[0].split('<think>')[-1].strip('\n') %}"
    "{% set said = said.split('</think>')[-1].lstrip('\n') %}{% endif %}<|im_start|>assistant\n"
    "{% if loop.last %}<think>\n{{ thought }}\n</think>\n\n{% endif %}{{ said }}<|im_end|>\n"
    "{% else %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)
"""As Qwen3's: reasoning is left out of earlier turns, and switched off by an empty one that the template writes."""
ALWAYS = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'].split('</think>')[-1] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
)
"""As DeepSeek-R1's and those of Qwen3's thinking models: the template opens the reasoning itself."""
NEVER = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"

PROMPT = (Message("user", "Where to?"),)
THOUGHT = "<think>\nI could answer <action>left</action>, but no.\n</think>\n\n<action>up</action> and more"
BARE = "I could answer <action>left</action>, but no."
FORM = "<plan>up</plan><action>up</action>"
LEFT = "left, <action>left</action>?</think><action>up</action>"
TWO = "up, <action>left</action>?\n</think>\n\n<think>hm"
GREEDY = Decoding(temperature=0, max_tokens=60)


@cache
def tokenizer_with(template: str | None) -> Any:
    from tokenizers import AddedToken

    made = byte_level_bpe([THOUGHT] * 3, 320, ["<|im_end|>", "<|im_start|>"])
    made.add_tokens([AddedToken("<think>", normalized=False), AddedToken("</think>", normalized=False)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="<|im_end|>", pad_token="<|im_end|>", chat_template=template
    )


@cache
def taught(template: str, text: str, *, prefix: str = "", thinking: bool | None = None) -> Any:
    """A Qwen3 model that says a text behind the prompt, with as few steps of training as it takes."""
    tokenizer = tokenizer_with(template)
    config = transformers.Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, max_position_embeddings=256, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.Qwen3ForCausalLM(config)
    own = {} if thinking is None else {"enable_thinking": thinking}
    reader = TransformersModel(model, tokenizer, chat_template_kwargs=own)
    (asked,) = reader.encode([(*PROMPT, *([Message("assistant", prefix)] if prefix else []))])
    said = [*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
    assert teach(model, torch.tensor([[*asked, *said]]), known=len(asked), rate=1e-2, steps=200, enough=0.02) < 0.02
    return model.eval()


def answered(template: str, text: str, decoding: Decoding = GREEDY, prefix: str = "", **options: Any) -> Any:
    model = TransformersModel(taught(template, text, prefix=prefix), tokenizer_with(template), **options)
    (completion,) = model.generate([(*PROMPT, *([Message("assistant", prefix)] if prefix else []))], decoding, [(1,)])
    return completion


@pytest.mark.parametrize(
    ("template", "prefix", "arguments", "opening"),
    [
        (HYBRID, "", {}, "may"),
        (HYBRID, "", {"enable_thinking": False}, "none"),
        (HYBRID, "<action>", {}, "none"),
        (ALWAYS, "", {}, "open"),
        (NEVER, "", {}, "none"),
        (None, "", {}, "none"),
    ],
)
def test_a_template_says_whether_a_model_reasons(template, prefix, arguments, opening):
    prompt = (*PROMPT, *([Message("assistant", prefix)] if prefix else []))
    assert Thinking(tokenizer_with(template), arguments, None, "it").opening(prompt) == opening


OFF = {"chat_template_kwargs": {"enable_thinking": False}}


@pytest.mark.parametrize(
    ("options", "said"),
    [(OFF, "enable_thinking, which the chat template of"), ({"thinking_budget": 5}, "has no </think>")],
)
def test_what_changes_nothing_is_refused_and_what_does_is_a_setting(options, said):
    with pytest.raises(ValueError, match=said):
        TransformersModel(taught(HYBRID, THOUGHT), tokenizer_with(NEVER), **options)
    model = TransformersModel(taught(HYBRID, THOUGHT), tokenizer_with(HYBRID), **options)
    assert model.settings.items() >= options.items()
    off = "<think>\n\n</think>\n\n" if "chat_template_kwargs" in options else ""
    assert model.render(PROMPT).endswith(f"<|im_start|>assistant\n{off}")
    prefixed = (*PROMPT, Message("assistant", "<action>"))
    assert model.render(prefixed).endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n<action>")


def test_a_stop_string_in_reasoning_ends_nothing_and_the_response_is_what_follows():
    completion = answered(HYBRID, THOUGHT)
    assert completion.response == "<action>up</action>"
    assert completion.reasoning == BARE
    assert completion.finish_reason == "stop"
    tokenizer = tokenizer_with(HYBRID)
    assert tokenizer.decode(completion.response_ids) == THOUGHT.removesuffix(" and more")
    thought = tokenizer(THOUGHT.partition("\n\n")[0], add_special_tokens=False)["input_ids"]
    assert completion.usage.reasoning_tokens == len(thought)
    endless = answered(HYBRID, THOUGHT, Decoding(temperature=0, max_tokens=6))
    assert (endless.response, endless.finish_reason, endless.usage.reasoning_tokens) == ("", "length", 6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("template", "prefix", "said", "response", "reasoning"),
    [
        (HYBRID, "", "<action>up</action> and more", "<action>up</action>", ""),
        (ALWAYS, "", THOUGHT.removeprefix("<think>\n"), "<action>up</action>", BARE),
        # the mode think asks every model for a <think> in its response, and a stop string in it ends nothing either
        (NEVER, "", THOUGHT, THOUGHT.removesuffix(" and more"), ""),
        (NEVER, "<think>", f"{LEFT} and more", LEFT, ""),
        # which a thinking model answers behind its reasoning
        (HYBRID, "", "<think>\nup, <action>left</action>?\n</think>\n\n<think>hm</think>" + FORM, FORM, TWO),
    ],
)
def test_the_response_and_the_reasoning_by_the_template(template, prefix, said, response, reasoning):
    completion = answered(template, said, prefix=prefix)
    assert (completion.response, completion.reasoning) == (response, reasoning)
    assert bool(completion.usage.reasoning_tokens) == bool(reasoning)
    assert completion.finish_reason == "stop"


def test_reasoning_is_closed_at_its_budget_and_the_model_goes_on_to_its_response():
    tokenizer = tokenizer_with(HYBRID)
    completion = answered(HYBRID, THOUGHT, Decoding(temperature=0, max_tokens=8), thinking_budget=4)
    closing = tokenizer(CLOSING, add_special_tokens=False)["input_ids"]
    begun = tokenizer(THOUGHT, add_special_tokens=False)["input_ids"][:4]
    assert list(completion.response_ids[: 4 + len(closing)]) == [*begun, *closing]
    assert completion.logprobs[4 : 4 + len(closing)] == (0.0,) * len(closing)
    forced = tuple(TokenSet((token,)) for token in closing)
    assert completion.allowed == (None,) * 4 + forced + (None,) * (len(completion.response_ids) - 4 - len(closing))
    assert len(completion.response_ids) <= 4 + 8
    assert completion.reasoning == tokenizer.decode(begun).removeprefix("<think>").strip()
    # the rest is what the model says behind all of that
    ids = torch.tensor([[*completion.prompt_ids, *completion.response_ids]])
    with torch.no_grad():
        scores = taught(HYBRID, THOUGHT)(input_ids=ids).logits[0].log_softmax(-1)
    at = len(completion.prompt_ids) + 4 + len(closing)
    for place in range(at, ids.shape[1]):
        assert int(scores[place - 1].argmax()) == int(ids[0, place])
        logprob = completion.logprobs[place - len(completion.prompt_ids)]
        assert float(scores[place - 1, ids[0, place]]) == pytest.approx(logprob, abs=1e-3)


@pytest.mark.parametrize("budget", [1, 4, 5, 6, 100])
def test_a_budget_that_is_not_used_up_changes_nothing(budget):
    """Also where it ends in the middle of the response, and of its stop string; sampled, so that draws go on."""
    text = "<action>up</action> and more"
    decoding = Decoding(temperature=1.0, max_tokens=60)
    given, usual = answered(HYBRID, text, decoding, thinking_budget=budget), answered(HYBRID, text, decoding)
    for field in ("response_ids", "response", "finish_reason"):
        assert getattr(given, field) == getattr(usual, field)
    assert given.logprobs == pytest.approx(usual.logprobs, abs=1e-4)


def test_rows_of_a_batch_go_on_by_themselves():
    model = TransformersModel(taught(HYBRID, THOUGHT), tokenizer_with(HYBRID), thinking_budget=10)
    decoding, seeds = Decoding(temperature=1.5, max_tokens=12), [(n,) for n in range(6)]
    prompts = [PROMPT, (Message("user", "Who?"),)] * 3
    for prompt, seed, row in zip(prompts, seeds, model.generate(prompts, decoding, seeds), strict=True):
        (alone,) = model.generate([prompt], decoding, [seed])
        assert (alone.response_ids, alone.response) == (row.response_ids, row.response)
        assert alone.logprobs == pytest.approx(row.logprobs, abs=1e-4)
