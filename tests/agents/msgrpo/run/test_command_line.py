"""``python -m agents.msgrpo``: from a file to a trained model, and sentences instead of tracebacks."""

import importlib.util
from contextlib import suppress
from typing import Any, cast

import pytest
import torch

from agents import load_agent
from agents.common.locking import FolderLock
from agents.episode import EpisodeTask
from agents.msgrpo import ConfigError, MSGRPOConfig, load_state, main
from agents.msgrpo.run.reporting import RunLog
from agents.msgrpo.run.saving import CONFIG, STATE, run_folder
from agents.msgrpo.tasks import Plain


@pytest.fixture
def model_folder(tmp_path, tokenizer, make_llama):
    folder = tmp_path / "model"
    make_llama(len(tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture
def config_file(tmp_path, model_folder, prompt_file):
    path = tmp_path / "run.toml"
    path.write_text(
        f'model = "{model_folder}"\nscenarios = ["TestCorridor-v0"]\nprompt_file = "{prompt_file}"\n'
        'response_mode = "direct"\nmax_response_tokens = 2\ngroups = 2\ngroup_size = 3\niterations = 2\n'
        f'eval_every = 2\neval_episodes = 2\nout = "{tmp_path / "run"}"\nlearning_rate = 1e-3\ndevice = "cpu"\n'
        "stop_after = 0\npreflight_episodes = 0\n"
    )
    return str(path)


def test_train_then_resume_for_more(config_file, tmp_path, capsys):
    assert main(["--config", config_file]) == 0
    out, run = capsys.readouterr(), tmp_path / "run"
    assert out.out.strip() == f"textbench run --agent hf:{run / 'best'} --scenario TestCorridor-v0"
    options = cast(Any, load_agent(f"hf:{run / 'best'}")).prompt_map  # its folder has the texts of the prompt file
    assert (options.mode, options.texts.response["direct"]) == ("direct", "Answer:")  # what it was trained with
    for words in ('author (preset = "paper") that this run departs from: ', "iteration 2/2", "evaluation after 2"):
        assert words in out.err
    assert main(["--resume", str(run), "--set", "iterations=3", "--quiet"]) == 0
    assert "iterations = 3, was 2" in capsys.readouterr().err
    assert (run / "last").resolve().name == "iteration-000003"
    assert len([x for x in (run / "metrics.jsonl").read_text().splitlines() if "evaluation" not in x]) == 3
    assert main(["--config", config_file]) == 2
    assert "already holds a run: go on with --resume" in capsys.readouterr().err
    (run / "last").unlink()
    assert main(["--config", config_file]) == 2
    assert "stopped before its first checkpoint" in capsys.readouterr().err


def test_a_checkpoint_that_was_copied_out_of_its_run_writes_into_no_folder_around_it(tmp_path, capsys):
    copied = tmp_path / "kept" / "mine"
    copied.mkdir(parents=True)
    (copied / STATE).write_bytes(b"")
    (copied / CONFIG).write_text(MSGRPOConfig(model="tiny", out=str(tmp_path)).to_toml())
    assert main(["--resume", str(copied)]) == 2
    assert "was copied out of its run: name the folder of the resumed run, --set out=FOLDER" in capsys.readouterr().err
    assert run_folder(tmp_path / "checkpoints" / "iteration-000002") == tmp_path


@pytest.mark.filterwarnings("ignore:.*line 2 is damaged and left out")
@pytest.mark.parametrize("damaged", [b"null", b"{}", b'{"iteration": "x"}', b'{"iter', b"\xff\xfe"])
def test_damaged_lines_of_metrics_and_those_of_later_iterations_are_left_out(tmp_path, damaged):
    file, good = tmp_path / "metrics.jsonl", b'{"iteration": 1}\n'
    for rest in (b'{"iteration": 2}\n{"iter', damaged + b'\n{"iteration": 2}\n'):
        file.write_bytes(good + rest)
        with RunLog(MSGRPOConfig(), tmp_path, first=1, quiet=True):
            assert file.read_bytes() == good


def test_a_damaged_training_state_is_one_sentence(tmp_path):
    torch.save({"iteration": 1, "history": [{"return": 1.0}]}, tmp_path / STATE)
    whole = (tmp_path / STATE).read_bytes()
    for place in range(0, len(whole), 7):
        (tmp_path / STATE).write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
        with suppress(ConfigError):
            load_state(tmp_path)


class Refusing(Plain):
    """A sampler that can be used with no game."""

    def check(self, task: EpisodeTask) -> None:
        raise ConfigError(f"not on {task.scenario}")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "the name of a recipe"),
        (["--set", "grups=2"], "did you mean 'groups'?"),
        (["--set", "scenarios=frozen-lake"], "model is empty"),
        (["--set", 'scenarios=["no_games:Dice-v0"]'], "scenarios: the game 'no_games:Dice-v0' can't be imported: No"),
        (["--config", "{config}", "--allow", "evil:A"], "--allow goes with --resume"),
        (["--config", "{config}", "--set", "tokenizer=./none"], "tokenizer = './none' can't be used"),
        (["--config", "{config}", "--set", 'lora_targets=["zzz"]'], "lora_targets = ['zzz'] with lora_rank = 0"),
        (["--config", "{config}", "--set", 'eval_scenarios=["snak"]'], "eval_scenarios: unknown scenario 'snak'"),
        (["--config", "tiny-frozen-lak"], "did you mean 'tiny-frozen-lake'?); by name there are"),
        (["--resume", "nowhere"], "nothing to resume in 'nowhere'"),
        (["--config", "{config}", "--set", "model=./none"], "no folder './none'"),
        (["--config", "{config}", "--set", "model=tiny-legal", "--set", "scenarios=mastermind"], "list its actions"),
        (["--config", "{config}", "--set", "model=tiny-legal", "--set", "response_mode=think"], "without reasoning"),
        (["--config", "{config}", "--set", "eval_opponent=random"], "no game that is evaluated on has another seat"),
        (["--config", "{config}", "--set", "model=nowhere", "--set", "credit=missing_module:Mine"], "missing_module"),
        (["--config", "{config}", "--set", f"task_sampling={__name__}:Refusing"], "not on TestCorridor-v0"),
        (["--config", "tiny-frozen-lake", "--set", "device=cuda:9"], "device"),
        (["--config", "{config}", "--set", "max_response_tokens=4096"], "leaves no room for a prompt"),
    ],
)
def test_bad_input_is_a_sentence_and_exit_code_2_before_a_base_is_made(arguments, words, config_file, capsys):
    assert main([argument.format(config=config_file) for argument in arguments]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert "Traceback" not in error
    assert "making the base model" not in error or "list its actions" in words


@pytest.mark.parametrize("engine", ["vllm", "ray"])
def test_what_an_engine_lacks_is_said_before_a_model_is_made(engine, tmp_path, monkeypatch, capsys):
    found = importlib.util.find_spec
    for module in ("textgames.extras", "agents.msgrpo.engines.vllm"):
        monkeypatch.setattr(f"{module}.find_spec", lambda name: None if name == engine else found(name))
    arguments = ["--config", "tiny-frozen-lake", "--set", f"engine={engine}", "--set", f"out={tmp_path / 'run'}"]
    assert main(arguments) == 2  # its base would take a minute
    said = capsys.readouterr().err
    assert f"engine = '{engine}'" in said
    assert f'".[{engine}]"' in said


def test_a_second_process_leaves_a_run_alone(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"iteration": 1}\n{"iteration": 2}\n')
    with FolderLock(tmp_path), pytest.raises(ConfigError, match="is in use by another textbench process"):
        RunLog(MSGRPOConfig(), tmp_path, first=1, quiet=True).__enter__()
    assert (tmp_path / "metrics.jsonl").read_text().count("\n") == 2  # the other's second iteration
    for _ in range(2):  # the folder is let go
        with RunLog(MSGRPOConfig(), tmp_path, first=1, quiet=True):
            assert (tmp_path / "metrics.jsonl").read_text().count("\n") == 1


def test_a_base_that_isn_t_done_when_it_is_stopped_is_not_kept(tmp_path, monkeypatch, capsys):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("agents.tiny.pretrain", interrupted)
    assert main(["--config", "tiny-frozen-lake", "--set", f"out={tmp_path / 'run'}"]) == 130
    assert "nothing is kept: the same command begins it anew" in capsys.readouterr().err


def test_divergence_is_exit_code_1(config_file, capsys):
    assert main(["--config", config_file, "--quiet", "--set", "abort_grad_norm=1e-9", "--set", "seed=1"]) == 1
    assert "was not applied" in capsys.readouterr().err
