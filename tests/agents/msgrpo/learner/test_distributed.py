"""Two processes over gloo give what one gives, within float error; data-parallel, sharded, and by ``torchrun``."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from agents.msgrpo import TokenRow
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
    (tmp_path / "run.toml").write_text(
        'model = "tiny"\nscenarios = ["frozen-lake"]\ndevice = "cpu"\nthreads = 1\niterations = 2\ngroups = 4\n'
        "group_size = 8\nmax_response_tokens = 48\nlearning_rate = 1e-3\nadam_eps = 1e-5\nminibatches = 1\n"
        'eval_every = 0\nsamples_every = 0\ntrackers = "tensorboard"\nout = "one"\n'
    )
    command = ["-m", "agents.msgrpo", "--quiet", "--config", "run.toml"]
    assert main(command[2:]) == 0
    told = [capsys.readouterr().out]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", *command, "--set", "out=two"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(torchrun, env=environment, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    told.append(done.stdout)
    metrics, weights = [], []
    for folder, said in zip((tmp_path / "one", tmp_path / "two"), told, strict=True):
        assert said.count("textbench run --agent") == 1  # one process speaks for the run
        assert len(list((folder / "tensorboard").glob("events*"))) == 1  # and tracks it
        metrics.append([json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()])
        weights.append(load_file(folder / "last" / "model.safetensors"))
    for one, two in zip(*metrics, strict=True):
        assert one["return"] == two["return"]
        assert one["grad_norm"] > 0
        # what the first process computed of the update: its half of the rows, whose trees share a little less
        assert 0.3 < two["update_tokens_computed"] / one["update_tokens_computed"] < 0.75
    for name, tensor in weights[0].items():
        torch.testing.assert_close(weights[1][name], tensor, atol=2e-5, rtol=1e-3)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_rows_are_dealt_evenly_and_none_twice_and_those_that_begin_alike_to_one_process(count):
    rows = [TokenRow((prompt, 5, 6), (answer,)) for answer in range(3) for prompt in (1, 2)]
    dealt = deal(rows, count)
    assert len(dealt) == count
    assert sorted(number for part in dealt for number in part) == list(range(6))
    sizes = [len(part) for part in dealt]
    assert max(sizes) - min(sizes) <= 1  # a small step leaves nobody idle
    if count == 2:
        assert [{rows[number].prompt[0] for number in part} for part in dealt] == [{1}, {2}]
