"""``vf-eval`` as people type it, against a real server of a real model: the returns are those of ``textbench run``."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("textbench_verifiers", reason="needs textbench-verifiers: .ci/adapters verifiers")
pytest.importorskip("fastapi", reason="transformers serve needs fastapi")
pytest.importorskip("torch", reason="transformers serve needs torch")

from agents.models.embedded import FOLDER
from benchmark.runs.folder import RunFolder
from tests.agents.transformers_serve import serving

pytestmark = pytest.mark.adapters
BIN = Path(sys.executable).parent
EPISODES = 3


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        [str(BIN / command[0]), *command[1:]], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_returns_are_those_of_textbench_run(tmp_path):
    model = tmp_path / "tiny"
    shutil.copytree(FOLDER / "tiny", model)
    with serving(model) as url:
        taskset = ("--env.taskset.scenario", "frozen-lake", "--env.taskset.episodes", str(EPISODES))
        client = ("--client.base-url", url, "--client.api-key-var", "NO_KEY", "--no-push")
        sampling = ("--sampling.temperature", "0", "--sampling.max-tokens", "256")
        said = run(tmp_path, "vf-eval", "textbench", *taskset, "-m", str(model), *client, *sampling, "--run.name", "r")
        command = ("--agent", f"m=openai:{model}", "--base-url", url, "--temperature", "0", "--quiet", "--out", "ours")
        run(tmp_path, "textbench", "run", "--scenario", "frozen-lake", "--episodes", str(EPISODES), *command)
    lines = (tmp_path / "outputs/r/traces.jsonl").read_text().splitlines()
    traces = [trace for line in lines for trace in json.loads(line)["traces"]]
    theirs = {trace["info"]["textbench"]["seed"]: trace["rewards"]["return"]["score"] for trace in traces}
    ours = {record.seed: record.returns["player_0"] for record in RunFolder.open(tmp_path / "ours").records()}
    assert theirs == ours
    assert f"reward {sum(ours.values()) / EPISODES:.2f}" in said
