"""The vLLM model against a stand-in for the package, as vLLM itself needs a GPU: arguments in, completions out.

What this can't show is that vLLM behaves as its documentation says.
"""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from agents import Decoding, LanguageAgentPolicy
from agents.models.vllm import VLLMModel
from agents.turn import Message

PROMPT = (Message("user", "go"),)


class Tokenizer:
    def __init__(self, chat_template):
        self.chat_template = chat_template

    def encode(self, text, add_special_tokens=True):
        return ([1] if add_special_tokens else []) + [ord(letter) for letter in text]

    def apply_chat_template(self, messages, tokenize, add_generation_prompt):
        assert (tokenize, add_generation_prompt) == (False, True)
        return "".join(f"[{message['role']}]{message['content']}" for message in messages)


@pytest.fixture
def vllm(monkeypatch):
    """A module with the parts of vLLM's documented interface that are used, which notes what it is called with."""
    module = ModuleType("vllm")
    module.__version__ = "0.0-stand-in"
    module.calls = []
    module.chat_template = "a template"
    module.finish_reasons = ["stop", "length"]

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
            token_ids = [10 + number, 20]
            logprobs = [{token: SimpleNamespace(logprob=-token / 100), 999: None} for token in token_ids]
            completion = SimpleNamespace(
                text=f"answer {number}</action>",
                token_ids=token_ids,
                logprobs=logprobs,
                finish_reason=module.finish_reasons[number],
            )
            return SimpleNamespace(outputs=[completion], prompt_token_ids=prompt["prompt_token_ids"])

    module.SamplingParams, module.LLM = SamplingParams, LLM
    monkeypatch.setitem(sys.modules, "vllm", module)
    return module


def test_arguments_and_completions(vllm):
    model = VLLMModel("some/model", engine={"tensor_parallel_size": 2})
    assert vllm.engine == {"model": "some/model", "logprobs_mode": "processed_logprobs", "tensor_parallel_size": 2}
    decoding = Decoding(temperature=1.25, top_p=0.9, max_tokens=7)
    first, second = model.generate([PROMPT, PROMPT], decoding, [(1,), (2,)])
    ((prompts, sampling, use_tqdm),) = vllm.calls
    assert prompts == [{"prompt_token_ids": [ord(letter) for letter in "[user]go"]}] * 2
    seeds = [settings.pop("seed") for settings in sampling]
    assert (
        sampling
        == [
            {
                "temperature": 1.25,
                "top_p": 0.9,
                "max_tokens": 7,
                "stop": ["</action>"],
                "include_stop_str_in_output": True,
                "skip_special_tokens": False,
                "spaces_between_special_tokens": False,
                "logprobs": 0,
            }
        ]
        * 2
    )
    assert seeds[0] != seeds[1]
    assert use_tqdm is False
    assert (first.text, first.finish_reason, first.token_ids) == ("answer 0</action>", "stop", (10, 20))
    assert first.logprobs == (-0.1, -0.2)
    assert second.logprobs == (-0.11, -0.2)
    assert second.finish_reason == "length"
    assert first.prompt_ids == tuple(prompts[0]["prompt_token_ids"])
    assert first.usage[:2] == (8, 2)
    assert model.generate([], decoding, []) == []


def test_an_aborted_response_is_an_error(vllm):
    vllm.finish_reasons = ["abort", None]
    for completion in VLLMModel("some/model").generate([PROMPT, PROMPT], Decoding(), [(1,), (2,)]):
        assert (completion.text, completion.finish_reason) == ("", "error")
        assert "vLLM ended the response with finish_reason " in completion.error


def test_a_model_without_a_chat_template_gets_plain_text(vllm):
    vllm.chat_template = None
    (turn,) = LanguageAgentPolicy(VLLMModel("base/model")).act(["obs"])
    ids = vllm.calls[0][0][0]["prompt_token_ids"]
    assert ids[0] == 1
    assert "".join(map(chr, ids[1:])).startswith("obs\n\nThink first")
    assert turn.response == "answer 0</action>"
    VLLMModel("base/model", chat=True).generate([PROMPT], Decoding(), [()])
    assert "".join(map(chr, vllm.calls[1][0][0]["prompt_token_ids"])) == "[user]go"


def test_a_missing_package_and_a_broken_one(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(ModuleNotFoundError, match=r"isn.t installed: pip install .*\[vllm\]"):
        VLLMModel("some/model")
    monkeypatch.delitem(sys.modules, "vllm")
    (tmp_path / "vllm.py").write_text("import surely_not_installed")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="surely_not_installed"):
        VLLMModel("some/model")
