"""The vLLM model against a stand-in for the package, as vLLM itself needs a GPU: arguments in, completions out.

What this can't show is that vLLM behaves as its documentation says.
"""

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

import pytest

from agents import Decoding, LanguageAgentPolicy, PromptMap, TurnRequest
from agents.models.vllm import VLLMModel
from agents.turn import Message
from tests.agents.models.local.test_transformers import make_tokenizer

PROMPT = (Message("user", "go"),)


class Tokenizer:
    def __init__(self, chat_template):
        self.chat_template = chat_template

    def encode(self, text, add_special_tokens=True):
        return ([1] if add_special_tokens else []) + [ord(letter) for letter in text]

    def decode(self, ids, skip_special_tokens):
        return "".join(map(chr, ids))

    def apply_chat_template(self, messages, tokenize, **options):
        assert len(options.keys() & {"add_generation_prompt", "continue_final_message"}) == 1
        if options.get("enable_thinking") is False:
            messages = [*messages, {"role": "assistant", "content": "<think></think>"}]
        return "".join(f"[{message['role']}]{message['content']}" for message in messages)


def output_of(text, token_ids, logprobs, finish_reason, prompt_token_ids):
    done = SimpleNamespace(text=text, token_ids=token_ids, logprobs=logprobs, finish_reason=finish_reason)
    return SimpleNamespace(outputs=[done], prompt_token_ids=prompt_token_ids)


@pytest.fixture
def vllm(monkeypatch):
    """A module with the parts of vLLM's documented interface that are used, which notes what it is called with."""
    module = ModuleType("vllm")
    module.__spec__ = ModuleSpec("vllm", None)
    module.__version__ = "0.0-stand-in"
    module.calls, module.chat_template = [], "a template"
    module.says, module.finish_reasons = None, ["stop", "length"]

    class SamplingParams:
        def __init__(self, **settings):
            self.settings = settings

    class LLM:
        def __init__(self, **settings):
            module.engine = settings

        def get_tokenizer(self):
            return Tokenizer(module.chat_template)

        def generate(self, prompts, sampling_params, use_tqdm):
            module.calls.append((prompts, [params.settings for params in sampling_params], use_tqdm))
            return [self.output(number, prompt) for number, prompt in enumerate(prompts)]

        def output(self, number, prompt):
            token_ids = [10 + number, 20] if module.says is None else [*map(ord, module.says)]
            logprobs = [{token: SimpleNamespace(logprob=-token / 100), 999: None} for token in token_ids]
            text = module.says or f"answer {number}</action>"
            return output_of(text, token_ids, logprobs, module.finish_reasons[number], prompt["prompt_token_ids"])

    module.SamplingParams, module.LLM = SamplingParams, LLM
    monkeypatch.setitem(sys.modules, "vllm", module)
    return module


def test_arguments_and_completions(vllm, monkeypatch):
    model = VLLMModel("some/model", engine={"tensor_parallel_size": 2})
    assert vllm.engine == {"model": "some/model", "logprobs_mode": "processed_logprobs", "tensor_parallel_size": 2}
    decoding = Decoding(temperature=1.25, top_p=0.9, max_tokens=7)
    first, second = model.generate([PROMPT, PROMPT], decoding, [(1,), (2,)])
    ((prompts, sampling, use_tqdm),) = vllm.calls
    assert prompts == [{"prompt_token_ids": [ord(letter) for letter in "[user]go"]}] * 2
    seeds = [settings.pop("seed") for settings in sampling]
    told = {"temperature": 1.25, "top_p": 0.9, "max_tokens": 7, "stop": ["</action>"], "logprobs": 0}
    told |= {"include_stop_str_in_output": True, "skip_special_tokens": False, "spaces_between_special_tokens": False}
    assert sampling == [told] * 2
    assert seeds[0] != seeds[1]
    assert use_tqdm is False
    assert (first.response, first.finish_reason, first.response_ids) == ("answer 0</action>", "stop", (10, 20))
    assert first.logprobs == (-0.1, -0.2)
    assert second.logprobs == (-0.11, -0.2)
    assert second.finish_reason == "length"
    assert first.prompt_ids == tuple(prompts[0]["prompt_token_ids"])
    assert first.usage[:2] == (8, 2)
    assert model.generate([], decoding, []) == []
    settings = model.settings
    vllm.finish_reasons, vllm.chat_template = ["abort", None], None
    base = VLLMModel("base/model")
    assert base.settings["tokenizer"] != settings["tokenizer"], "whose template belongs to the model's identity"
    for completion in base.generate([(*PROMPT, Message("user", "on"))] * 2, decoding, [(1,), (2,)]):
        assert (completion.response, completion.finish_reason) == ("", "error")
        assert "vLLM ended the response with finish_reason " in completion.error
    assert vllm.calls[1][0][0]["prompt_token_ids"] == [1, *map(ord, "go\n\non")], "without a template, plain text"
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(ModuleNotFoundError, match=r"isn.t installed: pip install .*\[vllm\]"):
        VLLMModel("some/model")


THOUGHT = "<think>I could answer <action>left</action></think><action>up</action> or <think>so"


def test_a_model_that_reasons_is_sent_no_stop_string_and_ends_here_and_a_budget_is_vllms_own(vllm):
    vllm.chat_template, vllm.says, vllm.finish_reasons = "knows </think> and enable_thinking", THOUGHT, ["length"] * 2
    with pytest.raises(ValueError, match=r"needs a newer vLLM: 0\.0-stand-in has no thinking_token_budget"):
        VLLMModel("qwen", thinking_budget=5)
    vllm.SamplingParams.thinking_token_budget = None
    model = VLLMModel("qwen", thinking_budget=5)
    (done,) = model.generate([PROMPT], Decoding(max_tokens=9), [()])
    sent = vllm.calls[0][1][0]
    assert (sent["stop"], sent["thinking_token_budget"], sent["max_tokens"]) == ([], 5, 14)
    assert (done.response, done.reasoning) == ("<action>up</action>", "I could answer <action>left</action>")
    assert "".join(map(chr, done.response_ids)) == THOUGHT.removesuffix(" or <think>so")
    assert len(done.logprobs) == len(done.response_ids) == done.usage.completion_tokens
    assert done.usage.reasoning_tokens == THOUGHT.index("</think>") + len("</think>")
    assert done.finish_reason == "stop"
    model.generate([(*PROMPT, Message("assistant", "<action>"))], Decoding(max_tokens=9), [()])
    assert "thinking_token_budget" not in vllm.calls[1][1][0]
    off = VLLMModel("qwen", chat_template_kwargs={"enable_thinking": False})
    (done,) = off.generate([PROMPT], Decoding(max_tokens=9), [()])
    assert (done.response, done.reasoning) == (THOUGHT, "")  # vLLM has stopped where it was told to
    assert off.settings["chat_template_kwargs"] == {"enable_thinking": False}


def test_a_stop_in_a_think_that_the_prompt_asks_for_is_gone_on_from(vllm, monkeypatch):
    """vLLM stops at the first stop string, wherever it is; what it says then goes on from all that it has said."""
    parts = ["<think>or <action>left</action>", ", or <action>up</action>", "</think><action>up</action>", " or so"]

    def generate(self, prompts, sampling_params, use_tqdm):
        ((prompt,), (params,)) = prompts, sampling_params
        ids, more = prompt["prompt_token_ids"], [*map(ord, parts[len(vllm.calls)])][: params.settings["max_tokens"]]
        vllm.calls.append(("".join(map(chr, ids)), params.settings))
        ended = "stop" if len(more) == len(parts[len(vllm.calls) - 1]) else "length"
        logprobs = [{token: SimpleNamespace(logprob=-1.0)} for token in more]
        return [output_of("".join(map(chr, more)), more, logprobs, ended, ids)]

    monkeypatch.setattr(vllm.LLM, "generate", generate)
    model = VLLMModel("some/model")
    (enough,) = model.generate([PROMPT], Decoding(max_tokens=200), [(1,)])
    assert enough.response == "".join(map(chr, enough.response_ids)) == "".join(parts[:3])
    assert len(enough.logprobs) == len(enough.response_ids) == enough.usage.completion_tokens
    assert (enough.finish_reason, enough.reasoning) == ("stop", "")
    assert "".join(map(chr, enough.prompt_ids)) == "[user]go"
    assert [asked for asked, _ in vllm.calls] == ["[user]go" + "".join(parts[:count]) for count in range(3)]
    limits = [settings["max_tokens"] for _, settings in vllm.calls]
    assert limits == [200 - len("".join(parts[:count])) for count in range(3)]
    assert len({settings["seed"] for _, settings in vllm.calls}) == 3
    vllm.calls.clear()
    (little,) = model.generate([PROMPT], Decoding(max_tokens=len(parts[0]) + 4), [(1,)])
    assert (little.response, little.finish_reason) == (parts[0] + ", or", "length")


def test_legal_answers_are_told_as_choices_and_what_was_allowed_is_found_again(vllm, monkeypatch):
    tokenizer = make_tokenizer()
    said = {"text": "<action>up</action>"}

    def output(self, number, prompt):
        ids = tokenizer(said["text"], add_special_tokens=False)["input_ids"]
        logprobs = [{token: SimpleNamespace(logprob=-0.5)} for token in ids]
        return output_of(said["text"], ids, logprobs, "stop", [1])

    monkeypatch.setattr(vllm.LLM, "output", output)
    monkeypatch.setattr(vllm.LLM, "get_tokenizer", lambda self: tokenizer)
    vllm.sampling_params = SimpleNamespace(StructuredOutputsParams=lambda choice: ("choice", choice))
    policy = LanguageAgentPolicy(VLLMModel("some/model"), PromptMap("direct"), legal_only=True)
    request = TurnRequest("here", "rules", ("up", "down"), seed=(1,))
    (turn,) = policy.act([request])
    ((_, (fields,), _),) = vllm.calls
    assert fields["structured_outputs"] == ("choice", ["<action>up</action>", "<action>down</action>"])
    assert turn.response == said["text"]
    assert all(token in allowed.ids for token, allowed in zip(turn.response_ids, turn.allowed, strict=True))
    said["text"] = "<action>left</action>"
    (turn,) = policy.act([request])
    assert "begins no legal answer" in turn.error
    with pytest.raises(ValueError, match=r"can't be played legal-only: .* in the mode direct alone"):
        LanguageAgentPolicy(VLLMModel("some/model"), PromptMap("think"), legal_only=True)
