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
    *("max_response_tokens=4", "eval_every=0", "samples_every=0", "out=out", "stop_after=0", "min_valid_share=0"),
)


def arguments(*settings):
    Path("run.toml").write_text("")
    return ["train", "--quiet", "--config", "run.toml", *(word for one in settings for word in ("--set", one))]


@pytest.mark.slow
def test_one_process_trains_without_accelerate(workplace):
    """In a process of its own: in this one, another test may have imported the package before it was taken away."""
    given = arguments(*ONE_ITERATION)
    code = f"import sys; sys.modules['accelerate'] = None; from benchmark.cli import main; sys.exit(main({given!r}))"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "textbench run --agent hf:out/best --scenario frozen-lake"
    assert (workplace / "out" / "best" / "model.safetensors").is_file()


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
    assert done.code == 2
    assert package in done.err
    assert "pip install" in done.err
    assert "Traceback" not in done.err


def test_one_command_installs_all_that_a_recipe_needs(textbench, monkeypatch):
    """A second error mustn't follow the first one's advice: the extra train doesn't read the model's file."""
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "gguf", None)
    done = textbench("train", "--config", "smollm2-quick")
    assert done.code == 2
    assert "training needs torch, gguf: pip install" in done.err
    assert "[smollm2]" in done.err


@pytest.mark.slow
def test_processes_that_cannot_find_each_other_are_refused(textbench, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    done = textbench(*arguments(*ONE_ITERATION))
    assert done.code == 2
    assert "launch with torchrun or accelerate launch, or unset WORLD_SIZE" in done.err
    assert "Traceback" not in done.err
    monkeypatch.delenv("WORLD_SIZE")  # the advice, followed in the same process
    assert textbench(*arguments(*ONE_ITERATION), "--set", 'trackers=["tensorboard"]').code == 0


def test_a_tracker_that_is_not_installed_is_named_before_a_model_is_loaded(textbench):
    done = textbench(*arguments(*ONE_ITERATION), "--set", 'trackers=["swanlab"]', "--set", 'model="hf:not/there"')
    assert done.code == 2
    assert "the tracker 'swanlab' needs the package swanlab, which is not installed: pip install swanlab" in done.err


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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("tiny-frozen-lake",),
            "'tiny-frozen-lake' stands where an option is wanted: a file or a recipe is named by --co",
        ),
        (("--iterations", "3"), "there is no option '--iterations'; it is a setting: --set iterations=VALUE"),
        (("--episodes", "3"), "there is no option '--episodes' (see python -m agents.msgrpo --help)"),
        (
            ("--config", "tiny-frozen-lake", "--set", "model=tiny", "--set", "scenarios=nope:Game-v0"),
            "the game 'nope:Game-v0' can't be imported",
        ),
    ],
)
def test_a_mistake_is_one_sentence(textbench, words, said):
    done = textbench("train", *words)
    assert done.code == 2
    assert said in done.err
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err


@pytest.mark.parametrize("command", ["train", "run"])
def test_weights_that_were_cut_off_are_refused(textbench, command):
    import shutil

    from agents.models.embedded import FOLDER

    shutil.copytree(FOLDER / "tiny", "cut")
    os.truncate("cut/model.safetensors", 300)
    given = {
        "train": arguments(*ONE_ITERATION, "model=cut"),
        "run": ["run", "--agent", "hf:cut", "--scenario", "frozen-lake", "--episodes", "1"],
    }[command]
    done = textbench(*given)
    assert done.code == 2
    assert "the weights in 'cut' are damaged" in done.err
    assert "Traceback" not in done.err
