"""The commands train and warmup: what they need and no more, and what warmup makes of a base."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from agents.models.embedded import FOLDER
from agents.msgrpo.warmup.start import ABOUT
from tests.benchmark.helpers import refused

pytest.importorskip("torch")
pytest.importorskip("transformers")


ONE_ITERATION = (
    *("model=tiny", "scenarios=frozen-lake", "device=cpu", "threads=1", "iterations=1", "groups=1", "group_size=2"),
    *("max_response_tokens=4", "eval_every=0", "samples_every=0", "out=out", "stop_after=0", "min_valid_share=0"),
)


def arguments(*settings):
    Path("run.toml").write_text("")
    return ["train", "--quiet", "--config", "run.toml", *(word for one in settings for word in ("--set", one))]


@pytest.mark.parametrize(
    ("package", "settings", "launched"),
    [("torch", (), {}), ("peft", ("lora_rank=2",), {}), ("accelerate", (), {"WORLD_SIZE": "2", "RANK": "0"})],
)
def test_what_is_needed_and_missing_is_named_with_its_command(textbench, monkeypatch, package, settings, launched):
    from transformers import LlamaForCausalLM  # noqa: F401 - a module that is half imported imports what it has found

    monkeypatch.setitem(sys.modules, package, None)
    for name, value in launched.items():
        monkeypatch.setenv(name, value)
    done = textbench(*arguments(*ONE_ITERATION, *settings))
    assert (done.code, package in done.err, "pip install" in done.err, "Traceback" in done.err) == (2, 1, 1, 0)
    if package == "torch":  # a second error mustn't follow the advice: the extra train doesn't read the model's file
        monkeypatch.setitem(sys.modules, "gguf", None)
        done = textbench("train", "--config", "smollm2-quick")
        assert "training needs torch, gguf: pip install" in done.err
        assert "[smollm2]" in done.err


@pytest.mark.slow
def test_processes_that_cannot_find_each_other_are_refused(textbench, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    refused(textbench(*arguments(*ONE_ITERATION)), "launch with torchrun or accelerate launch, or unset WORLD_SIZE")
    monkeypatch.delenv("WORLD_SIZE")  # the advice, followed in the same process
    monkeypatch.setitem(sys.modules, "accelerate", None)  # one process trains without it
    done = textbench(*arguments(*ONE_ITERATION))
    assert done.code == 0, done.err
    assert done.out.strip() == "textbench run --agent hf:out/best --scenario frozen-lake"
    assert Path("out/best/model.safetensors").is_file()


def test_a_tracker_that_is_not_installed_is_named_before_a_model_is_loaded(textbench):
    done = textbench(*arguments(*ONE_ITERATION), "--set", 'trackers=["swanlab"]', "--set", 'model="hf:not/there"')
    refused(done, "the tracker 'swanlab' needs the package swanlab, which is not installed: pip install swanlab")


GAME_AND_METHOD = """
import textgames
from agents.msgrpo.credit.methods import Compared as Mine
from textgames.frozen_lake.game import FrozenLake

textgames.register("TestNearBy-v0", FrozenLake, max_steps=2)
"""


@pytest.mark.parametrize("setting", ["scenarios=near_by_game:TestNearBy-v0", "credit=near_by_method:Mine"])
def test_what_lies_in_the_working_directory_is_found(textbench, monkeypatch, setting):
    """The command as it is installed hasn't the working directory on its path, as ``python -m`` has."""
    for name in ("near_by_game", "near_by_method"):
        Path(f"{name}.py").write_text(GAME_AND_METHOD)
    Path("file").write_text("in place of a folder, so that nothing is trained")
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])
    done = textbench(*arguments(*ONE_ITERATION, setting, "out=file/x"))
    assert (done.code, done.err.endswith("file: Not a directory\n")) == (2, True), done.err
    assert setting.partition("=")[2].partition(":")[0] in sys.modules
    assert str(Path.cwd()) not in sys.path


MISTAKES = {
    "train tiny-frozen-lake": "'tiny-frozen-lake' stands where an option is wanted: a file or a recipe is named by --c",
    "train --iterations 3": "there is no option '--iterations'; it is a setting: --set iterations=VALUE",
    "train --config tiny-frozen-lake --set model=tiny --set scenarios=nope:X-v0": "game 'nope:X-v0' can't be imported",
    "warmup --scenario frozen-lake --teacher planer": "did you mean 'planner'",
    "warmup --scenario frozen-lake --explore 1.5": "--explore must be a number from 0 to 1, got '1.5'",
    "warmup --scenario frozen-lake --set learning_rat=1": "learning_rat is not a setting",
    "warmup --scenario frozen-lake --rank 4 --full": "--rank and --full exclude each other",
}


@pytest.mark.parametrize(("command", "said"), MISTAKES.items())
def test_a_mistake_is_one_sentence(textbench, workplace, command, said):
    words = command.split()
    refused(textbench(*words, *(("--model", "tiny", "--examples", 32) if words[0] == "warmup" else ())), said)
    assert not list(workplace.rglob("*.safetensors"))


def test_weights_that_were_cut_off_are_refused(textbench):
    shutil.copytree(FOLDER / "tiny", "cut")
    os.truncate("cut/model.safetensors", 300)
    for command in (arguments(*ONE_ITERATION, "model=cut"), ["run", "--agent", "hf:cut", "--scenario", "frozen-lake"]):
        refused(textbench(*command), "the weights in 'cut' are damaged")


WARMUP = (
    *("warmup", "--scenario", "frozen-lake", "--model", "tiny", "--examples", 32, "--rank", 2, "--eval-episodes", 2),
    *("--mode", "think", "--set", "device=cpu", "--set", "dtype=float32", "--json"),
    *("--teacher", "random", "planner", "--explore", 0.2),
)


@pytest.mark.slow
def test_it_learns_and_evaluates_before_and_after_and_a_second_call_plays_nothing_anew(textbench):
    done, file = textbench(*WARMUP), Path("runs/warmup-frozen-lake", ABOUT)
    assert done.code == 0, done.err
    number = r"-?\d\.\d\d \[-?\d\.\d\d, -?\d\.\d\d\]"
    said = " ".join(done.err.split())
    assert re.search(f"frozen-lake, 2 episodes each: score {number} before, {number} after; success", said)
    scores = {score["agent"]: score for score in json.loads(done.out)["scores"]}
    about = json.loads(file.read_text())
    assert (about["warmup"]["teachers"], about["warmup"]["explore"]) == (["random", "planner"], 0.2)
    assert about["held_out"] < about["held_out_before"]
    kept = {"base": about["evaluation"]["before"], "warm": about["evaluation"]["after"]}
    assert scores.keys() == kept.keys()
    for agent, (row,) in kept.items():
        assert row.items() <= scores[agent].items()
        assert (row["scenario"], row["episodes"]) == ("frozen-lake", 2)
        assert row["normalized"].keys() == row["success_rate"].keys() == {"value", "low", "high"}
    again = textbench(*WARMUP)
    assert (again.code, {row["agent"]: row for row in json.loads(again.out)["scores"]}) == (0, scores)
    assert json.loads(file.read_text()) == about
