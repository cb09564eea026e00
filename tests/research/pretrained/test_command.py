"""``textbench reproduce`` with a pretrained model, from the command to the report; stopped and killed on the way."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmark.cli import main
from research.pretrained.findings import read_findings
from research.pretrained.jobs import PretrainedFolder
from research.pretrained.report import report_data
from research.pretrained.settings import read_pretrained
from tests.research.pretrained.helpers import make_model, write_recipe


def test_the_report_of_an_empty_folder_is_honest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe, out = write_recipe(tmp_path, "some-model"), tmp_path / "out"
    assert main(["reproduce", "--config", str(recipe), "--out", str(out), "--report"]) == 1
    assert "jobs have no result" in capsys.readouterr().out
    assert "not run yet |" in (out / "report.md").read_text()
    assert main(["reproduce", "--out", str(out), "--report"]) == 2
    assert "was made with" in capsys.readouterr().err


def test_a_plan_names_the_parts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = write_recipe(tmp_path, "some-model")
    assert main(["reproduce", "--config", str(recipe), "--dry-run", "--parts", "main"]) == 0
    told = capsys.readouterr().out
    assert "4 training runs of part main" in told
    assert "with 1 process(es); nothing was done" in told
    assert "baseline" not in told
    assert main(["reproduce", "--config", str(recipe), "--dry-run", "--parts", "main", "--jobs", "2"]) == 0
    assert "with 2 process(es)" in capsys.readouterr().out


def test_nothing_ships_that_is_not_trained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe, out = write_recipe(tmp_path, "some-model"), tmp_path / "out"
    assert main(["reproduce", "--config", str(recipe), "--out", str(out), "--ship", str(tmp_path / "models")]) == 2
    assert "has nothing finished that ships (starts.few, arms.plain; of trainings seed 0)" in capsys.readouterr().err


@pytest.mark.slow
def test_stopped_twice_and_killed_it_ends_where_it_would_have(tmp_path: Path) -> None:
    model = make_model(tmp_path / "pretrained")
    recipe = write_recipe(tmp_path, model)
    command = [sys.executable, "-m", "benchmark.cli", "reproduce", "--config", str(recipe), "--parts", "main"]
    whole = subprocess.run([*command, "--out", str(tmp_path / "whole")], capture_output=True, text=True)
    assert whole.returncode == 0, whole.stderr
    assert "not complete" in whole.stdout  # other parts
    out = tmp_path / "stopped"
    stops = [
        (signal.SIGINT, "start/few/settings.json"),
        (signal.SIGKILL, "train/plain/0/settings.json"),
        (signal.SIGTERM, "train/plain/1/settings.json"),
    ]
    for stop, moment in stops:
        process = subprocess.Popen(
            [*command, "--out", str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        deadline = time.monotonic() + 120
        while not (out / moment).exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        assert process.poll() is None, process.communicate()
        os.kill(process.pid, stop)
        _, error = process.communicate(timeout=90)
        if stop != signal.SIGKILL:
            assert process.returncode == 130, error
            assert f"--out {out}" in error
            assert "Traceback" not in error
    done = subprocess.run([*command, "--out", str(out)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    experiment = read_pretrained(recipe)
    one, other = (
        report_data(read_findings(experiment, PretrainedFolder(place)), {}) for place in (tmp_path / "whole", out)
    )
    assert one["fresh"] == other["fresh"]
    assert [run["success"] for run in one["runs"]] == [run["success"] for run in other["runs"]]
    command = [*command[:-2], "--out", str(out), "--ship", str(tmp_path / "models")]
    shipped = subprocess.run(command, capture_output=True, text=True)
    written = [str(tmp_path / "models" / name) for name in ("little-start", "little-lake")]
    assert shipped.stdout.split() == written, shipped.stderr
    settings = json.loads((tmp_path / "models" / "little-lake" / "adapter_config.json").read_text())
    assert (settings["r"], settings["base_model_name_or_path"]) == (1, str(model))
    assert "a LoRA adapter of rank 1" in (tmp_path / "models" / "little-lake" / "README.md").read_text()
    assert "what a training begins from" in (tmp_path / "models" / "little-start" / "README.md").read_text()
