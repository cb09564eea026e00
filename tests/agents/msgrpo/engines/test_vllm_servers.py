"""Training through servers: requests shared, weights sent, faults found out; with real vLLM in ``tests/engines``.

The server here answers like vLLM (0.32), over a tiny model of transformers, with the faults that a server can have.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import torch
from safetensors.torch import load_file

from agents.models.answers import LegalAnswers
from agents.models.base import Decoding
from agents.models.local.transformers import TransformersModel
from agents.msgrpo import ConfigError, MSGRPOTrainer, RolloutError
from agents.turn import Message
from tests.agents.models.local.test_transformers import make_tokenizer
from tests.agents.msgrpo.runs import SHORT


class Routes:
    """A server that can be paused, given weights, killed and started again.

    ``scale_out`` and ``dev_mode`` are whether their routes are there; ``processed``: log-probabilities are those after
    the temperature; ``renews_output``: a reload renews a tied output layer, which vLLM's on a CPU doesn't by itself.
    """

    def __init__(
        self, model: Any, tokenizer: Any, *, scale_out: bool = True, dev_mode: bool = True, processed: bool = True,
        renews_output: bool = True,
    ) -> None:  # fmt: skip
        from transformers import LlamaForCausalLM

        torch.manual_seed(9)
        self.model = LlamaForCausalLM(model.config).eval()
        self.sampler = TransformersModel(self.model, tokenizer)
        self.scale_out, self.dev_mode, self.processed = scale_out, dev_mode, processed
        self.renews_output = renews_output
        self.version, self.log, self.sampled = "default", list[str](), 0
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen, on the same port as before, with the label of a new server."""
        self.version = "default"
        routes = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length) or b"{}")
                status, told = routes.answer(urlsplit(self.path).path, body)
                data = told.encode() if isinstance(told, str) else json.dumps(told).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = answer

            def log_message(self, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def kill(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        with self._lock:
            self.log.append(path)
            if path == "/v1/models":
                return 200, {"data": [{"id": "m"}]}
            if path == "/inference/v1/generate":
                return self.generate(body) if self.scale_out else (403, {"error": "not enabled"})
            if path == "/v1/completions":
                return self.completions(body)
            if not self.dev_mode:
                return 404, {"detail": "Not Found"}
            if path == "/collective_rpc":
                return self.call(body)
            if path == "/v1/load_lora_adapter":
                return 200, f"Success: LoRA adapter '{body['lora_name']}' added successfully."
            if path == "/update_weight_version":
                self.version = body["new_version"]
            return 200, {"success": True}

    def call(self, body: dict[str, Any]) -> tuple[int, Any]:
        if body["method"] == "renew_output_layer":
            return (200, {"results": ["True"]}) if self.renews_output else (500, {"error": "no attribute"})
        weights = load_file(Path(body["kwargs"]["weights_path"]) / "model.safetensors")
        if not self.renews_output:  # the old output layer goes on beside the new embedding
            head = torch.nn.Linear(*reversed(self.model.lm_head.weight.shape), bias=False)
            head.weight.data = self.model.lm_head.weight.detach().clone()
            self.model.lm_head = head
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                if name in weights:
                    parameter.copy_(weights[name])
        return 200, {"results": [None]}

    def sample(self, ids: list[int], fields: dict[str, Any]) -> Any:
        self.sampled += 1
        temperature = fields["temperature"]
        decoding = Decoding(temperature=temperature, max_tokens=fields["max_tokens"], stop=tuple(fields["stop"]))
        self.sampler.decoder.forget()  # type: ignore[union-attr]
        rules = None
        if (told := fields.get("structured_outputs")) is not None:
            assert list(told) == ["choice"]
            names = tuple(text.removeprefix("<action>").removesuffix("</action>") for text in told["choice"])
            rules = [self.sampler.vocabulary.rules(LegalAnswers(names))]
        (row,) = self.sampler.generate_ids([tuple(ids)], decoding, [(fields["seed"],)], rules=rules)
        logprobs = list(row.logprobs)
        if not self.processed:
            scores = torch.log_softmax(self.model(torch.tensor([[*ids, *row.ids]])).logits[0].double(), -1)
            logprobs = [scores[len(ids) - 1 + t, token].item() for t, token in enumerate(row.ids)]
        said = [token for token in row.ids if token not in self.sampler.eos_ids]
        return row, logprobs, self.sampler.stop_check(decoding.stop).trim(self.sampler.decode(said))

    def generate(self, body: dict[str, Any]) -> tuple[int, Any]:
        row, logprobs, text = self.sample(body["token_ids"], body["sampling_params"])
        choice = {
            "token_ids": row.ids, "text": text, "finish_reason": "stop" if row.stopped else "length",
            "logprobs": {"content": [{"logprob": one} for one in logprobs]},
            "weight_versions": [{"version": self.version, "start": 0, "end": len(row.ids)}],
        }  # fmt: skip
        return 200, {"choices": [choice]}

    def completions(self, body: dict[str, Any]) -> tuple[int, Any]:
        row, logprobs, text = self.sample(body["prompt"], body)
        choice = {
            "token_ids": row.ids, "text": text, "finish_reason": "stop" if row.stopped else "length",
            "logprobs": {"token_logprobs": logprobs},
        }  # fmt: skip
        return 200, {"choices": [choice]}


@contextmanager
def serving(*arguments: Any, **options: Any) -> Iterator[Routes]:
    routes = Routes(*arguments, **options)
    try:
        yield routes
    finally:
        routes.kill()


CONFIG = replace(SHORT, iterations=3, temperature=1.25, learning_rate=5e-3, engine="vllm")


@pytest.fixture
def serve(tokenizer, make_llama):
    with ExitStack() as stack:
        yield lambda **faults: stack.enter_context(serving(make_llama(len(tokenizer)), tokenizer, **faults))


@pytest.fixture
def make_trainer(tokenizer, make_llama, prompt_file):
    def make(*servers: Routes, **settings: Any) -> MSGRPOTrainer:
        model = make_llama(len(tokenizer), initializer_range=0.15)
        config = replace(
            CONFIG, **{"prompt_file": prompt_file, "engine_urls": tuple(s.url for s in servers)} | settings
        )
        return MSGRPOTrainer(model, tokenizer, "TestCorridor-v0", config, quiet=True)

    return make


@pytest.mark.slow
@pytest.mark.parametrize("scale_out", [True, False])
def test_training_through_servers_equals_training_the_live_model(make_trainer, serve, scale_out):
    servers = serve(scale_out=scale_out), serve(scale_out=scale_out)
    trainer = make_trainer(*servers)
    history = trainer.train()
    assert all(metrics["mismatch_max"] < 1e-4 for metrics in history if not metrics["skipped"])
    assert any(not metrics["skipped"] for metrics in history)
    assert min(server.sampled for server in servers) > 10  # both played
    assert [server.version for server in servers] == [str(trainer.source.version)] * 2
    update = ["pause", "collective_rpc", "collective_rpc", "reset_prefix_cache", "update_weight_version", "resume"]
    assert servers[0].log[1:7] == [f"/{route}" for route in update]
    trainer.engine.close()


def test_a_server_that_goes_is_left_out_and_taken_up_again(make_trainer, serve):
    staying, leaving = serve(), serve()
    trainer = make_trainer(staying, leaving)
    leaving.kill()
    with pytest.warns(RuntimeWarning, match="1 of 2 servers continue"):
        trainer.rollout()
    trainer.engine.down.clear()
    leaving.start()  # with weights of its own, and a label that says so
    with pytest.warns(RuntimeWarning, match="answers with weights 'default' and was sent 0: it was restarted"):
        trainer.rollout()
    assert trainer.engine.up == [trainer.engine.servers[0]]
    trainer.source.renew(1)
    assert len(trainer.engine.up) == 2
    assert leaving.version == "1"
    staying.kill()
    leaving.kill()
    with (
        pytest.warns(RuntimeWarning, match="servers continue"),
        pytest.raises(RolloutError, match="no other server is left"),
    ):
        trainer.rollout()
    trainer.source.renew(2)  # tried again before the next episode, and then it is an error
    with pytest.raises(RolloutError, match="Start them again, then resume"):
        trainer.source.settle()


@pytest.mark.parametrize(
    ("faults", "settings", "error", "words"),
    [
        ({"dev_mode": False}, {}, ConfigError, "VLLM_SERVER_DEV_MODE=1"),
        ({"processed": False}, {}, RolloutError, "--logprobs-mode processed_logprobs"),
        ({"renews_output": False}, {}, RolloutError, "doesn't have the learner's weights.*tied to its embedding"),
        ({}, {"engine_options": {"model": "n"}}, ConfigError, "serves no model 'n'; it has m"),
        ({}, {"engine_options": {"updater": "nccl"}}, ConfigError, "GPU"),
        ({}, {"engine_options": {"updater": "lora"}}, ConfigError, "lora_rank"),
        ({}, {"engine_options": {"llm": {"seed": 1}}}, ConfigError, "vLLM in this process"),
        ({}, {"lora_rank": 2}, RolloutError, "doesn't have the learner's weights"),  # an adapter on another base model
        ({}, {"engine_urls": ("http://127.0.0.1:1", "http://127.0.0.1:1/v1")}, ConfigError, "twice"),
        ({}, {"engine_urls": ("host:8000",)}, ConfigError, "accepted: addresses like"),
        ({}, {"engine_urls": ("http://127.0.0.1:1",)}, RolloutError, "doesn't answer"),
    ],
)
def test_servers_and_settings_that_can_not_be_used(make_trainer, serve, faults, settings, error, words):
    with pytest.raises(error, match=words):
        make_trainer(serve(**faults), **settings)


def test_of_several_learning_processes_the_first_brings_the_weights(make_trainer, serve, make_llama, tokenizer):
    from agents.msgrpo.engines.engine import EngineParts
    from agents.msgrpo.engines.vllm import VLLM

    server = serve()
    trainer = make_trainer(server)
    parts = EngineParts(trainer.model, tokenizer, trainer.config, torch.float32, rank=1, processes=2)
    second: Any = VLLM().build(parts)
    asked = len(server.log)
    second.update_weights(iter([]), 0)
    assert len(server.log) == asked
    (answer,) = second.answers((Message("user", "left"),), trainer.policy.decoding, (1,))
    assert {span.version for span in answer.weights} == {0}


def test_servers_are_told_the_legal_answers_and_the_learner_finds_the_same_sets(make_llama, prompt_file):
    tokenizer = make_tokenizer()
    config = replace(CONFIG, prompt_file=prompt_file, legal_only=True, max_response_tokens=24, iterations=2)
    with serving(make_llama(len(tokenizer)), tokenizer) as server:
        config = replace(config, engine_urls=(server.url,))
        trainer = MSGRPOTrainer(make_llama(len(tokenizer)), tokenizer, "TestCorridor-v0", config, quiet=True)
        history = trainer.train()
        trainer.engine.close()
        assert [each["invalid_rate"] for each in history] == [0.0, 0.0]
        assert 0 < max(each.get("mismatch_max", 0.0) for each in history) < 1e-4
        thinking = replace(config, response_mode="think", prompt_file="")
        with pytest.raises(ConfigError, match=r"legal_only = true: .* in the mode direct alone"):
            MSGRPOTrainer(make_llama(len(tokenizer)), tokenizer, "TestCorridor-v0", thinking, quiet=True)
