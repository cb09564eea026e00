"""A Hugging Face model in this process, from a folder on disk to the leaderboard."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agents import PromptTexts
from agents.models.embedded import PROVIDER
from benchmark.results import read_results
from benchmark.runs.folder import RunFolder
from tests.benchmark.helpers import counted
from textgames.extras import CPU_TORCH


@pytest.fixture
def checkpoint(workplace):
    """A random model of a few thousand parameters, with a tokenizer of bytes."""
    pytest.importorskip("transformers")
    from tests.agents.models.local.test_transformers import make_tokenizer
    from tests.tiny_models import tiny_llama

    tokenizer = make_tokenizer()
    tiny_llama(len(tokenizer), layers=1).save_pretrained("checkpoint")
    tokenizer.save_pretrained("checkpoint")
    return Path("checkpoint")


@pytest.mark.slow
def test_a_local_model_plays_is_cut_off_and_goes_on(textbench, checkpoint):
    command = ("run", "--agent", f"mine=hf:{checkpoint}", "--scenario", "frozen-lake", "--episodes", 3, "--quiet")
    settings = ("--mode", "direct", "--max-tokens", 6, "--temperature", 0.7, "--max-concurrency", 1)
    done = textbench(*command, *settings, "--out", "r", "--json")
    assert done.code == 0, done.err
    (row,) = json.loads(done.out)["scores"]
    assert row["invalid_rate"]["value"] > 0.9  # it has never learned to write an action
    records = list(RunFolder.open(Path("r")).records())
    steps = [step for record in records for step in record.steps]
    assert all(step.turn.usage[0] > 100 and 1 <= step.turn.usage[1] <= 6 for step in steps)
    assert any(step.turn.finish_reason == "length" for step in steps)
    whole = counted("r")
    lines = Path("r/episodes.jsonl").read_bytes().splitlines(keepends=True)
    Path("r/episodes.jsonl").write_bytes(lines[0] + lines[1][:50])
    assert textbench("resume", "r", "--quiet").code == 0
    assert counted("r") == whole
    (card,) = RunFolder.open(Path("r")).manifest["agents"]
    assert (card["name"], card["kind"], card["settings"]["mode"]) == ("mine", "hf", "direct")
    assert textbench("leaderboard", "r", "--html", "page.html").code == 0


@pytest.mark.slow
def test_a_hub_that_cannot_be_reached_is_one_line_at_once(tmp_path):
    pytest.importorskip("transformers")
    # nothing listens at the address; every file would be asked for six times, with waits in between
    command = [sys.executable, "-m", "benchmark.cli", "run", "--agent", "hf:tinyy", "--scenario", "frozen-lake"]
    environment = {**os.environ, "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path / "hub")}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1, done.stderr
    assert "'tinyy' (did you mean 'tiny'?) isn't among the models downloaded before, and the Hugging" in done.stderr


@pytest.mark.slow
def test_a_run_in_all_wordings_is_kept_and_goes_on(textbench):
    """The wordings stand on the agent's card, and a resume draws them again."""
    command = ("run", "--agent", "tiny", "--scenario", "frozen-lake", "--mode", "direct", "--prompts", "all")
    assert textbench(*command, "--episodes", "6", "--out", "r").code == 0
    (card,) = RunFolder.open(Path("r")).manifest["agents"]
    assert PromptTexts.from_data(card["settings"]["prompt_map"]["texts"]) == PromptTexts.from_file("all")
    assert textbench("resume", "r", "--episodes", "12").code == 0
    (cell,) = read_results("r").columns.cells.values()
    assert (cell.episodes, cell.complete) == (12, True)


# ---------------------------------------------------------------- without torch

WITHOUT_TORCH = """
import sys
for name in ("torch", "transformers", "tokenizers", "safetensors"):
    sys.modules[name] = None  # as if it weren't installed
from benchmark.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_without_torch_a_run_plays_who_needs_none_and_says_what_adds_the_others(workplace, textbench):
    def without_torch(*arguments):
        command = [sys.executable, "-c", WITHOUT_TORCH, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=workplace, timeout=60)
        assert done.returncode == 0, done.stderr
        return done

    done = without_torch("run", "--scenario", "frozen-lake", "--episodes", "2", "--out", "r")
    said = done.stderr.splitlines()[0]
    assert said.startswith("without the embedded models, which need torch, transformers")
    assert "pip install" in said
    assert said.endswith(CPU_TORCH)
    assert "Traceback" not in done.stderr
    assert all(name in done.stdout for name in ("random", "greedy", "planner"))
    assert "tiny" not in done.stdout
    doctor = " ".join(without_torch("doctor").stdout.split())
    assert "no torch without the embedded models" in doctor
    assert CPU_TORCH.partition(" ")[2] in doctor
    # nothing is said where agents are named or torch is there
    assert without_torch("run", "--agent", "random", "--episodes", "2", "--scenario", "snake", "--dry-run").stderr == ""
    assert PROVIDER.missing() is None
    assert "without the embedded models" not in textbench("run", "--dry-run").err
