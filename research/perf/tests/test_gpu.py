"""The GPU checks by their one command, with tiny shapes on a CPU."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_all_gpu_checks_run_on_a_cpu(tmp_path: Path) -> None:
    parts = [] if find_spec("vllm") is None else ["--only", "attention", "sampling", "recipes"]
    command = [sys.executable, str(ROOT / "research/perf/gpu.py"), "--small", "--device", "cpu", "--out", str(tmp_path)]
    done = subprocess.run([*command, *parts], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "gpu.json").read_text())
    assert result["small"]
    assert not result["failed"]
    assert done.stdout.strip() == (tmp_path / "gpu.md").read_text().strip()
    assert result["machine"]["bfloat16_flops"] > 0
    for path in (ROOT / "configs").glob("*.toml"):
        if "vllm" in path.stem:
            continue
        recipe = result[f"recipes: {path.stem}"]
        assert recipe["packing"] == "tree"
        assert recipe["update_tokens_computed"] > 0
        half = path.stem.startswith(("qwen", "smollm2", "paper"))  # sampled and trained in bfloat16
        assert recipe["mismatch_mean"] < (5e-3 if half else 1e-5)
        assert path.stem in done.stdout
    assert result["sampling: waits"]["per_token"] == pytest.approx(1 / 8)
    assert result["sampling: recorded"]["tokens_alike"] == 1.0  # nothing is recorded on a CPU
    adapter = result["sampling: adapter"]
    assert adapter["bytes_factors"] < 0.5 * adapter["bytes_merged"]
    assert adapter["largest_difference_factors"] < 1e-4
    assert result["attention"]["largest_relative_difference"] < 1e-5
    assert "no gradient on a CPU" in result["attention"]["why_not"]


@pytest.mark.slow
def test_the_prepared_run_of_three_billion_weights(tmp_path: Path) -> None:
    """The very command for a card, with tiny shapes: two iterations of each recipe."""
    command = [sys.executable, str(ROOT / "research/perf/gpu.py")]
    checked = subprocess.run([*command, "--check", "--recipe", "3b"], capture_output=True, text=True)
    assert "packages that are missing: none" in checked.stdout, checked.stderr
    assert "qwen2.5-3b-lora-frozen-lake: rollout 6.98 GiB, update 9.67 of 79.0; host 0.33 of" in checked.stdout
    assert "qwen2.5-3b-frozen-lake: rollout 41.25 GiB, update 62.19 of 79.0; host 34.49 of" in checked.stdout
    assert "vllm" not in checked.stdout
    options = ["--device", "cpu", "--only", "recipes", "--iterations", "2", "--out", str(tmp_path)]
    done = subprocess.run(
        [*command, *options, "--recipe", "3b-frozen", "3b-lora", "paper"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "gpu.json").read_text())
    found = {name: one for name, one in result.items() if name.startswith("recipes: ")}
    assert len(found) == 3
    for one in found.values():
        assert one["attention"] == "sdpa"  # nothing is compiled
        assert one["packing"] == "tree"
        assert one["update_tokens_computed"] > 0
        for part in ("rollout", "update"):
            assert one[f"{part}_seconds"] > 0
            assert one[f"peak_{part}"]["resident"] > one["predicted"][part] / 2 > 0


@pytest.mark.slow
def test_a_part_that_is_not_there_is_refused() -> None:
    command = [sys.executable, str(ROOT / "research/perf/gpu.py"), "--only", "everything"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "invalid choice: 'everything'" in done.stderr
    done = subprocess.run([*command[:2], "--recipe", "qwen-9b"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "no recipe has 'qwen-9b' in its name: " in done.stderr
    assert "qwen2.5-0.5b" in done.stderr


@pytest.mark.slow
def test_what_was_measured_is_kept_when_it_is_stopped(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "research/perf/gpu.py"), "--small", "--device", "cpu", "--out", str(tmp_path)]
    with subprocess.Popen([*command, "--only", "sampling"], stdout=-1, stderr=-1, text=True) as running:
        assert running.stderr is not None
        while "sampling: recorded" not in running.stderr.readline():  # the second part begins
            assert running.poll() is None
        running.terminate()
        printed, errors = running.communicate(timeout=60)
    assert running.returncode == 130, errors
    assert "Stopped: what follows is missing." in printed
    assert "Traceback" not in errors
    assert json.loads((tmp_path / "gpu.json").read_text())["sampling: waits"]["per_token"] == pytest.approx(1 / 8)
