"""Two processes over gloo give what one gives, within float error; data-parallel, sharded, and by ``torchrun``."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agents.msgrpo.credit.batch import TokenRow
from agents.msgrpo.learner.scoring.packing import deal

ROOT = Path(__file__).parents[4]
WORKER = Path(__file__).with_name("worker.py")


def run(
    folder: Path, model: str, prompts: str, processes: int, kind: str, **changes: Any
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Train in ``processes`` processes, with further settings as JSON; metrics and final weights as rank 0 has them."""
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
        command = [sys.executable, str(WORKER), model, prompts, str(folder), json.dumps(changes)]
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        started.append(subprocess.Popen(command, env=environment, **pipes))
    outputs = [process.communicate(timeout=240)[0] for process in started]
    assert all(process.returncode == 0 for process in started), "\n".join(outputs)
    return json.loads((folder / "history.json").read_text()), torch.load(folder / "weights.pt")


@pytest.mark.nightly  # by day two processes train in the next test
@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_two_processes_equal_one(kind, tmp_path, tokenizer, make_llama, prompt_file):
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


@pytest.mark.slow
def test_torchrun_on_a_cpu_starts_one_run_that_both_processes_work_on(tmp_path, monkeypatch, capsys):
    from safetensors.torch import load_file

    from agents.msgrpo.__main__ import main

    monkeypatch.chdir(tmp_path)
    settings = {
        "model": "tiny", "scenarios": "frozen-lake", "device": "cpu", "threads": "1", "iterations": "2", "groups": "4",
        "group_size": "8", "max_response_tokens": "48", "temperature": "1.25", "learning_rate": "1e-3",
        "adam_eps": "1e-5", "minibatches": "1", "eval_every": "2", "eval_episodes": "4", "samples_every": "0",
        "trackers": "tensorboard",
    }  # fmt: skip
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "agents.msgrpo"]
    (tmp_path / "empty.toml").write_text("")
    metrics, weights = {}, {}
    for name in ("one", "two"):
        command = ["--quiet", "--config", "empty.toml"]
        command += [word for key, value in (settings | {"out": name}).items() for word in ("--set", f"{key}={value}")]
        if name == "one":
            assert main(command) == 0
            told = capsys.readouterr().out
        else:
            environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
            done = subprocess.run(
                [*torchrun, *command], env=environment, capture_output=True, text=True, check=False, timeout=240
            )
            assert done.returncode == 0, done.stderr
            told = done.stdout
        assert told.count("textbench run --agent") == 1  # one process speaks for the run
        lines = map(json.loads, (tmp_path / name / "metrics.jsonl").read_text().splitlines())
        metrics[name] = [record for record in lines if "evaluation" not in record]
        weights[name] = load_file(tmp_path / name / "last" / "model.safetensors")
        assert len(list((tmp_path / name / "tensorboard").glob("events*"))) == 1  # only the first process tracks
    assert [record["iteration"] for record in metrics["two"]] == [1, 2]
    for one, two in zip(metrics["one"], metrics["two"], strict=True):
        assert one["return"] == two["return"]
        assert one["grad_norm"] > 0
        # what the first process computed of the update: its half of the rows, whose trees share a little less
        assert 0.3 < two["update_tokens_computed"] / one["update_tokens_computed"] < 0.75
    for name, tensor in weights["one"].items():
        torch.testing.assert_close(weights["two"][name], tensor, atol=2e-5, rtol=1e-3)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_rows_are_dealt_evenly_and_none_twice(count):
    rng = np.random.default_rng(count)
    rows = [TokenRow(tuple(rng.integers(3, size=4).tolist()), (1, 2)) for _ in range(5)]
    dealt = deal(rows, count)
    assert len(dealt) == count
    assert sorted(number for part in dealt for number in part) == list(range(5))
    sizes = [len(part) for part in dealt]
    assert max(sizes) - min(sizes) <= 1  # a small step leaves nobody idle


def test_rows_that_begin_alike_are_dealt_to_one_process():
    rows = [TokenRow((prompt, 5, 6), (answer,)) for answer in range(3) for prompt in (1, 2)]
    assert [{rows[number].prompt[0] for number in part} for part in deal(rows, 2)] == [{1}, {2}]
