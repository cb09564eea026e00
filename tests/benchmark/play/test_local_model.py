"""A Hugging Face model in this process, from a folder on disk to the leaderboard, and behind transformers serve."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agents import PromptTexts
from agents.models.embedded import FOLDER, PROVIDER
from benchmark.runs.folder import RunFolder
from tests.agents.transformers_serve import serving
from tests.benchmark.helpers import counted, steps_in
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
    settings = ("--mode", "direct", "--max-tokens", 6, "--max-concurrency", 1, "--prompts", "all")
    done = textbench(*command, *settings, "--out", "r", "--json")
    assert done.code == 0, done.err
    (row,) = json.loads(done.out)["scores"]
    assert row["invalid_rate"]["value"] > 0.9  # it has never learned to write an action
    steps = steps_in("r")
    assert all(step.turn.usage[0] > 100 and 1 <= step.turn.usage[1] <= 6 for step in steps)
    assert any(step.turn.finish_reason == "length" for step in steps)
    whole = counted("r")
    lines = Path("r/episodes.jsonl").read_bytes().splitlines(keepends=True)
    Path("r/episodes.jsonl").write_bytes(lines[0] + lines[1][:50])
    assert textbench("resume", "r", "--quiet").code == 0
    assert counted("r") == whole
    (card,) = RunFolder.open(Path("r")).manifest["agents"]
    assert (card["name"], card["kind"], card["settings"]["mode"]) == ("mine", "hf", "direct")
    assert PromptTexts.from_data(card["settings"]["prompt_map"]["texts"]) == PromptTexts.from_file("all")


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


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The server's URL and the model's name there, which is its folder."""
    pytest.importorskip("fastapi", reason="transformers serve needs fastapi: the extra test has it")
    folder = tmp_path_factory.mktemp("served") / "tiny"
    shutil.copytree(FOLDER / "tiny", folder)
    with serving(folder) as url:
        yield url, str(folder)


@pytest.mark.slow
@pytest.mark.parametrize("route", ["chat", "responses", "completions"])
def test_a_real_server_plays(served, textbench, route):
    url, model = served
    command = ("run", "--agent", f"m=openai:{model}", "--base-url", url, "--scenario", "frozen-lake", "--episodes", 2)
    done = textbench(*command, "--set", f"m.route={route}", "--max-tokens", 64, "--out", "r", "--quiet")
    assert done.code == 0, done.err
    steps = steps_in("r")
    assert len(steps) >= 2
    assert all(min(step.turn.usage[:2]) > 0 for step in steps)
    if route == "chat":  # the template is what the model was made with, so it answers in form
        assert sum(step.valid for step in steps) > len(steps) / 2
        assert all(step.turn.response.count("<action>") == 1 for step in steps if step.valid)


@pytest.mark.slow
def test_a_real_server_takes_a_tool_and_text_in_place_of_its_call_does_not_count(served, textbench):
    """The model that ships knows no tools: the server gives its text, in which it plays well."""
    url, model = served
    command = ("run", "--agent", f"m=openai:{model}", "--base-url", url, "--scenario", "frozen-lake", "--episodes", 1)
    done = textbench(*command, "--protocol", "tools", "--max-tokens", 64, "--out", "r", "--quiet")
    assert done.code == 0, done.err
    steps = steps_in("r")
    assert steps
    assert {(step.turn.response, step.valid, bool(step.turn.cut)) for step in steps} == {("", False, True)}
