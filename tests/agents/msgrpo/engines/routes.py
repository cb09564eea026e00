"""vLLM's routes over a tiny model of transformers, with the faults that a vLLM server can have.

``tests/engines`` runs the real server; this one answers alike (vLLM 0.32), in milliseconds.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import torch
from safetensors.torch import load_file

from agents.models.answers import LegalAnswers
from agents.models.base import Decoding
from agents.models.local.transformers import TransformersModel


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
