"""Models through the real LiteLLM, against a real local server: the same answers as without it between."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from agents import TurnRequest, load_agent
from agents.models.litellm import PROVIDER, LiteLLMModel, list_price
from agents.models.served.address import MissingAPIKeyError
from tests.agents.models.asking import ANSWER, KEY, ask, several, up
from tests.agents.openai_server import OpenAIServer
from tests.agents.raw_server import RawServer, answer

ROOT = Path(__file__).parents[3]
INSTALLED = find_spec("litellm") is not None
needs_litellm = pytest.mark.skipif(
    not INSTALLED, reason="LiteLLM isn't installed; .ci/litellm runs these tests with it"
)
# LiteLLM's own code warns of its dependencies' deprecations, and leaves connections to the collector
quiet = pytest.mark.filterwarnings("ignore")
REFUSED_BY_OPENAI = {"temperature": "default", "stop": "", "max_tokens": "max_completion_tokens"}


def complete(server, model="openai/local", number=1, **options):
    options = {"model": model, "patience": 20, **options}
    return ask(
        server, several(number), at_once=True, make=lambda name, api_key, **own: LiteLLMModel(name, **own), **options
    )


@pytest.mark.skipif(INSTALLED, reason="LiteLLM is installed")
def test_without_litellm_the_command_is_said():
    assert "litellm: pip install" in PROVIDER.missing()
    with pytest.raises(ModuleNotFoundError, match="litellm:openai/m needs LiteLLM, which isn't installed: pip install"):
        load_agent("litellm:openai/m")
    assert list_price("openai/gpt-4o-mini") is None


@quiet
@needs_litellm
@pytest.mark.usefixtures("quick")
class TestWithLiteLLM:
    def test_what_is_sent_and_what_comes_back(self, monkeypatch):
        monkeypatch.setenv("MY_KEY", KEY)
        with OpenAIServer(respond=up, prompt_cache=0.7) as server:
            server.model, server.fingerprint = "m-2026", "fp_1"
            options = {"key_variable": "MY_KEY", "headers": {"X-Title": "play"}, "extra_body": {"top_k": 5}}
            (completion,) = complete(server, send_seed=True, **options)
        assert completion.error is None
        assert completion.response == ANSWER
        assert (completion.usage.prompt_tokens, completion.usage.cached_prompt_tokens) == (3, 2)
        assert completion.served_by == "m-2026 fp_1"
        (request,) = server.requests
        assert request["messages"][1] == {"role": "user", "content": "Where to?"}
        assert (request["model"], request["temperature"], request["top_k"]) == ("local", 0.5, 5)
        assert (request["max_tokens"], request["stop"], "seed" in request) == (256, ["</action>"], True)
        assert (server.headers["authorization"], server.headers["x-title"]) == (f"Bearer {KEY}", "play")

    def test_a_tool_and_a_budget_of_thinking_go_out_in_the_words_of_a_provider(self, monkeypatch):
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        called = {"type": "tool_use", "id": "t1", "name": "act", "input": {"action": "left"}}
        thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
        body = {"id": "m", "type": "message", "role": "assistant", "model": "c", "stop_reason": "tool_use"}
        body |= {"content": [thought, called], "usage": {"input_tokens": 5, "output_tokens": 7}}
        options = {"temperature": 1, "thinking_budget": 2000, "tools": True}
        request = TurnRequest("where", legal_actions=("left", "right"))
        with RawServer(answer(json.dumps(body).encode())) as server:
            address = server.base_url.removesuffix("/v1")
            (turn,) = load_agent("litellm:anthropic/claude-sonnet-4-5", base_url=address, **options).act([request])
        assert (turn.response, turn.reasoning, turn.error) == ("<action>left</action>", "hm", None)
        sent = json.loads(server.body)
        assert sent["thinking"] == {"type": "enabled", "budget_tokens": 2000}
        assert sent["max_tokens"] == 256 + 2000
        (tool,) = sent["tools"]
        assert (tool["name"], tool["input_schema"]["properties"]["action"]["enum"]) == ("act", ["left", "right"])
        with OpenAIServer(calls=lambda request: [("act", {"action": "right"})]) as server:  # of open models
            (turn,) = load_agent("litellm:openai/m", base_url=server.base_url, **options).act([request])
        assert turn.response == "<action>right</action>"
        assert server.requests[-1]["thinking_token_budget"] == 2000

    @pytest.mark.parametrize(
        ("fault", "attempts", "said"),
        [
            ("401", 1, "status 401 from URL: Incorrect API key provided: Bearer [redacted]"),
            ("500", 2, "status 500 from URL: injected 500 (the last of 2 attempts)"),
            ("hang", 2, "no answer from URL within 0.4 s (the last of 2 attempts)"),
            ("drop", 2, "status 500 from URL: Connection error. (the last of 2 attempts)"),
            ("abort", 2, "URL answered with finish_reason 'abort'"),
            ("content-filter", 1, "URL answered with a content filter's notice"),
        ],
    )
    def test_failures_of_the_provider(self, fault, attempts, said, monkeypatch):
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        with OpenAIServer(faults={fault: 1.0}) as server:
            (completion,) = complete(server, max_retries=1, timeout=0.4 if fault == "hang" else 10)
            assert completion.error.replace(f"{server.base_url} (LiteLLM)", "URL").startswith(said)
            assert sum(server.served.values()) == attempts
        assert KEY not in completion.error

    def test_reasoning_models(self):
        effort = {"reasoning_effort": "low", "extra_body": {"allowed_openai_params": ["reasoning_effort"]}}
        with OpenAIServer(respond=up, reasoning=40, refused=REFUSED_BY_OPENAI) as server:
            (completion,) = complete(server, **effort)
        assert completion.response == ANSWER
        assert completion.usage.reasoning_tokens == 40
        assert completion.left_out == ("temperature", "stop")

    def test_prices_are_those_of_its_table(self):
        price = list_price("openai/gpt-4o-mini")
        assert price["source"].startswith("LiteLLM ")
        assert price["source"].endswith("gpt-4o-mini")
        assert 0 < price["cached_input"] < price["input"] < price["output"] < 10
        assert list_price("openai/gpt-4o-mini", base_url="http://127.0.0.1:9/v1") is None
        assert list_price("openai/no-such-model-at-all") is None

    def test_what_is_missing_or_wrong_is_said_before_the_first_request(self, monkeypatch):
        monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
        with pytest.raises(MissingAPIKeyError, match="export ANTHROPIC_API_KEY="):
            LiteLLMModel("anthropic/claude-sonnet-4-5")
        with pytest.raises(ValueError, match="LiteLLM knows no provider of 'nonsense'; write litellm:PROVIDER/MODEL"):
            LiteLLMModel("nonsense")
        with pytest.raises(ValueError, match="the base URL has the form"):
            LiteLLMModel("openai/m", base_url="localhost:8000")

    def test_a_run_with_a_limit_on_money_needs_no_price_file(self, tmp_path):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "FAKE_KEY": "planted-fake-key-123"}

        def textbench(*words):
            command = [sys.executable, "-m", "benchmark.cli", *map(str, words)]
            return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)

        with OpenAIServer() as server:
            command = ("run", "--agent", "m=litellm:hosted_vllm/gpt-4o-mini", "--base-url", server.base_url)
            unknown = textbench(*command, "--scenario", "frozen-lake", "--max-cost", 1)
            command = ("run", "--agent", "m=litellm:deepseek/deepseek-chat", "--set", f"m.base_url={server.base_url}")
            sets = ("--set", "m.key_variable=FAKE_KEY", "--scenario", "frozen-lake", "--episodes", 2, "--out", "r")
            done = textbench(*command, *sets, "--max-cost", 1, "--json")
        assert unknown.returncode == 2
        assert "--max-cost needs a price for 'm'" in unknown.stderr
        assert done.returncode == 0, done.stderr
        manifest = json.loads((tmp_path / "r" / "manifest.json").read_text())
        assert manifest["prices"]["m"]["source"].startswith("LiteLLM ")
        (row,) = json.loads(done.stdout)["scores"]
        assert 0 < row["cost"] < 0.01
        assert manifest["agents"][0]["kind"] == "litellm"
