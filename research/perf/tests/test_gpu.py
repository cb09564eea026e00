"""The GPU checks by their one command, with tiny shapes on a CPU."""

import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """The script in this process."""
    monkeypatch.syspath_prepend(str(ROOT / "research/perf"))

    def main(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["gpu.py", *arguments])
        return int(importlib.import_module("gpu").main())

    return main


@pytest.mark.filterwarnings("ignore")  # of libraries; those of users are in the result
@pytest.mark.parametrize(
    "recipes",
    [
        pytest.param(("3b-lora", "kuhn"), marks=pytest.mark.slow),
        pytest.param(("",), id="all", marks=pytest.mark.nightly),
    ],
)
def test_all_gpu_checks_run_on_a_cpu(
    recipes: tuple[str, ...], gpu: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = ["--recipe", *recipes]
    parts += [] if find_spec("vllm") is None else ["--only", "attention", "sampling", "recipes"]
    code = gpu("--small", "--device", "cpu", "--out", str(tmp_path), *parts)
    printed, errors = capsys.readouterr()
    assert code == 0, errors
    result = json.loads((tmp_path / "gpu.json").read_text())
    assert result["small"]
    assert not result["failed"]
    assert printed.strip() == (tmp_path / "gpu.md").read_text().strip()
    assert result["machine"]["bfloat16_flops"] > 0
    for path in (ROOT / "configs").glob("*.toml"):
        if "vllm" in path.stem or not any(text in path.stem for text in recipes):
            continue
        recipe = result[f"recipes: {path.stem}"]
        assert recipe["attention"] == "sdpa"  # nothing is compiled
        assert recipe["packing"] == "tree"
        assert recipe["update_tokens_computed"] > 0
        assert all(recipe["predicted"][part] > 0 < recipe[f"{part}_seconds"] for part in ("rollout", "update"))
        half = path.stem.startswith(("qwen", "smollm2", "paper"))  # sampled and trained in bfloat16
        assert recipe["mismatch_mean"] < (5e-3 if half else 1e-5)
        assert path.stem in printed
    assert result["sampling: waits"]["per_token"] == pytest.approx(1 / 8)
    assert result["sampling: recorded"]["tokens_alike"] == 1.0  # nothing is recorded on a CPU
    adapter = result["sampling: adapter"]
    assert adapter["bytes_factors"] < 0.5 * adapter["bytes_merged"]
    assert adapter["largest_difference_factors"] < 1e-4
    assert result["attention"]["largest_relative_difference"] < 1e-5
    assert "no gradient on a CPU" in result["attention"]["why_not"]


def test_what_three_billion_weights_take_is_told_without_a_gpu(
    gpu: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    gpu("--check", "--recipe", "3b")
    checked = capsys.readouterr().out
    assert "packages that are missing: none" in checked
    assert "qwen2.5-3b-lora-frozen-lake: rollout 6.98 GiB, update 9.67 of 79.0; host 0.33 of" in checked
    assert "qwen2.5-3b-frozen-lake: rollout 41.25 GiB, update 62.19 of 79.0; host 34.49 of" in checked
    assert "vllm" not in checked


def test_a_recipe_that_there_is_not_is_refused(gpu: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        gpu("--recipe", "qwen-9b")
    assert "no recipe has 'qwen-9b' in its name: paper, qwen2.5-0.5b" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_what_was_measured_is_kept_when_it_is_stopped(
    gpu: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sampling = importlib.import_module("gpu_checks.sampling")
    monkeypatch.setattr(sampling, "recorded", lambda *_: os.kill(os.getpid(), signal.SIGTERM))  # the second part
    assert gpu("--small", "--device", "cpu", "--only", "sampling", "--out", str(tmp_path)) == 130
    printed, errors = capsys.readouterr()
    assert "Stopped: what follows is missing." in printed
    assert "Traceback" not in errors
    assert json.loads((tmp_path / "gpu.json").read_text())["sampling: waits"]["per_token"] == pytest.approx(1 / 8)
