"""``textbench train`` asks for what a run needs and no more."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

ROOT = Path(__file__).parents[3]
ONE_ITERATION = (
    *("model=tiny", "scenarios=frozen-lake", "device=cpu", "threads=1", "iterations=1", "groups=1", "group_size=2"),
    *("max_response_tokens=4", "eval_every=0", "samples_every=0"),
)


def train_without(package, *settings, **environment):
    """Run the command where a package isn't installed."""
    arguments = ["train", "--quiet", "--config", "run.toml", *(word for one in settings for word in ("--set", one))]
    code = f"import sys; sys.modules[{package!r}] = None; from benchmark.cli import main; sys.exit(main({arguments!r}))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)


@pytest.fixture
def environment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.toml").write_text("")
    return os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def test_one_process_trains_without_accelerate(environment, tmp_path):
    done = train_without("accelerate", *ONE_ITERATION, "out=out", **environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "textbench run --agent hf:out/best"
    assert (tmp_path / "out" / "best" / "model.safetensors").is_file()


@pytest.mark.parametrize(
    ("package", "settings", "launched"),
    [("torch", (), {}), ("peft", ("lora_rank=2",), {}), ("accelerate", (), {"WORLD_SIZE": "2", "RANK": "0"})],
)
def test_what_is_needed_and_missing_is_named_with_its_command(package, settings, launched, environment):
    done = train_without(package, *ONE_ITERATION, *settings, **environment, **launched)
    assert done.returncode == 2
    assert package in done.stderr
    assert "pip install" in done.stderr
    assert "Traceback" not in done.stderr


def test_processes_that_cannot_find_each_other_are_refused(environment):
    done = train_without("matplotlib", *ONE_ITERATION, **environment, WORLD_SIZE="2")
    assert done.returncode == 2
    assert "launch with torchrun or accelerate launch, or unset WORLD_SIZE" in done.stderr
    assert "Traceback" not in done.stderr
