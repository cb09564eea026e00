"""A Hugging Face model in this process, from a folder on disk to the leaderboard."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmark.runs.folder import RunFolder
from tests.benchmark.helpers import counted


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
