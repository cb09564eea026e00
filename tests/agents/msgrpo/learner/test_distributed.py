"""Two processes over gloo give what one gives, within float error; data-parallel and sharded."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

WORKER = Path(__file__).with_name("worker.py")


def run(
    folder: Path, model: str, prompts: str, processes: int, kind: str
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Train in ``processes`` processes; metrics and final weights as rank 0 has them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder.mkdir()
    started = []
    for rank in range(processes):
        environment = os.environ | {
            "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port), "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1",
        }  # fmt: skip
        if kind == "fsdp":
            environment |= {
                "ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "1", "FSDP_SHARDING_STRATEGY": "FULL_SHARD",
                "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP", "FSDP_TRANSFORMER_CLS_TO_WRAP": "LlamaDecoderLayer",
                "FSDP_USE_ORIG_PARAMS": "true",
            }  # fmt: skip
        started.append(
            subprocess.Popen(
                [sys.executable, str(WORKER), model, prompts, str(folder)],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    outputs = [process.communicate(timeout=240)[0] for process in started]
    assert all(process.returncode == 0 for process in started), "\n".join(outputs)
    return json.loads((folder / "history.json").read_text()), torch.load(folder / "weights.pt")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_two_processes_equal_one(kind: str, tmp_path: Path, tokenizer: Any, make_llama: Any, prompt_file: str) -> None:
    model = str(tmp_path / "model")
    make_llama(len(tokenizer)).save_pretrained(model)
    tokenizer.save_pretrained(model)
    one, weights_one = run(tmp_path / "one", model, prompt_file, 1, "ddp")
    two, weights_two = run(tmp_path / "two", model, prompt_file, 2, kind)
    for a, b in zip(one, two, strict=True):
        for name in ("return", "success", "response_tokens", "update_tokens", "episodes_drawn", "optimizer_steps"):
            assert a[name] == b[name], name
        for name in ("loss", "grad_norm", "entropy", "kl", "ratio"):
            assert a[name] == pytest.approx(b[name], rel=2e-3, abs=2e-5), name
    assert any(h["grad_norm"] > 0 for h in one)
    assert weights_one.keys() == weights_two.keys()
    for name in weights_one:
        torch.testing.assert_close(weights_two[name], weights_one[name], atol=2e-5, rtol=1e-3)
    saved = (tmp_path / "two" / "run" / "last").resolve()
    assert saved.name == "iteration-000003"
    assert (saved / "model.safetensors").is_file()
