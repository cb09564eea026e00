"""``python -m agents.msgrpo``: from a file to a trained model, and sentences instead of tracebacks."""

import importlib.util
import sys
from contextlib import suppress
from typing import Any, cast

import pytest

from agents import load_agent
from agents.common.locking import FolderLock
from agents.episode import EpisodeTask
from agents.msgrpo import MSGRPOConfig
from agents.msgrpo.__main__ import main
from agents.msgrpo.errors import ConfigError
from agents.msgrpo.run.reporting import RunLog
from agents.msgrpo.run.saving import CONFIG, STATE, load_state, run_folder
from agents.msgrpo.tasks import Plain
from agents.tiny import Recipe
from agents.tiny.imitation import demonstrate
from textgames.frozen_lake import FrozenLake


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


@pytest.mark.slow
def test_train_then_resume_for_more(config_file, tmp_path, capsys):
    assert main(["--config", config_file]) == 0
    out = capsys.readouterr()
    best = tmp_path / "run" / "best"
    assert out.out.strip() == f"textbench run --agent hf:{best} --scenario TestCorridor-v0"
    options = cast(Any, load_agent(f"hf:{best}")).prompt_map  # its folder has the texts of the prompt file
    assert (options.mode, options.texts.response["direct"]) == ("direct", "Answer:")  # what it was trained with
    assert 'author (preset = "paper") that this run departs from: episode_sampling = "off", ' in out.err
    assert "iteration 2/2" in out.err
    assert "evaluation after 2" in out.err
    assert main(["--resume", str(tmp_path / "run"), "--set", "iterations=3", "--quiet"]) == 0
    assert "iterations = 3, was 2" in capsys.readouterr().err
    assert (tmp_path / "run/last").resolve().name == "iteration-000003"
    assert len([x for x in (tmp_path / "run/metrics.jsonl").read_text().splitlines() if "evaluation" not in x]) == 3
    assert main(["--config", config_file]) == 2
    assert "already holds a run" in capsys.readouterr().err


def test_a_checkpoint_that_was_copied_out_of_its_run_writes_into_no_folder_around_it(tmp_path, capsys):
    copied = tmp_path / "kept" / "mine"
    copied.mkdir(parents=True)
    (copied / STATE).write_bytes(b"")
    (copied / CONFIG).write_text(MSGRPOConfig(model="tiny", out=str(tmp_path)).to_toml())
    assert main(["--resume", str(copied)]) == 2
    assert "was copied out of its run: name the folder of the resumed run, --set out=FOLDER" in capsys.readouterr().err
    assert run_folder(tmp_path / "checkpoints" / "iteration-000002") == tmp_path


def test_damaged_lines_of_metrics_are_left_out(tmp_path):
    file, good = tmp_path / "metrics.jsonl", '{"iteration": 1}'
    file.write_text(f'{good}\n{{"iteration": 2}}\n{{"iter')  # cut off when the machine went down
    with RunLog(MSGRPOConfig(), tmp_path, first=1, quiet=True):
        assert file.read_text() == f"{good}\n"
    for damaged in (b"null", b"{}", b'{"iteration": "x"}', b'{"iter', b"\xff\xfe"):
        file.write_bytes(b"%s\n%s\n%s\n" % (good.encode(), damaged, b'{"iteration": 2}'))
        with (
            pytest.warns(UserWarning, match="line 2 is damaged and left out"),
            RunLog(MSGRPOConfig(), tmp_path, first=1, quiet=True),
        ):
            assert file.read_text() == f"{good}\n"


def test_a_damaged_training_state_is_one_sentence(tmp_path):
    import torch

    file = tmp_path / STATE
    torch.save({"iteration": 1, "history": [{"return": 1.0}]}, file)
    whole = file.read_bytes()
    for place in range(0, len(whole), 7):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
        with suppress(ConfigError):
            load_state(tmp_path)


def test_print_config_is_a_config(tmp_path, capsys):
    assert main(["--print-config", "--set", "groups=7"]) == 0
    (tmp_path / "printed.toml").write_text(capsys.readouterr().out)
    assert MSGRPOConfig.from_toml(tmp_path / "printed.toml") == MSGRPOConfig(groups=7)


OWN_GAMES = """
import textgames
from textgames.frozen_lake import FrozenLake

textgames.register("OwnLake-v0", FrozenLake, max_steps="auto")
"""


@pytest.fixture
def own_games(tmp_path, monkeypatch):
    (tmp_path / "own_games.py").write_text(OWN_GAMES)
    (tmp_path / "broken_games.py").write_text("nonsense")
    monkeypatch.chdir(tmp_path)
    yield "own_games:OwnLake-v0"
    sys.modules.pop("own_games", None)


@pytest.mark.parametrize(
    ("game", "words"),
    [
        ("no_games:Dice-v0", "scenarios: the game 'no_games:Dice-v0' can't be imported: No module named 'no_games'"),
        ("broken_games:Dice-v0", "can't be imported: NameError: name 'nonsense' is not defined"),
        ("own_games:OwnLakes-v0", "did you mean 'OwnLake-v0'?"),
    ],
)
def test_a_game_of_ones_own_that_is_not_there_is_a_sentence(own_games, game, words, capsys):
    assert main(["--set", "model=tiny-legal", "--set", f'scenarios=["{game}"]', "--set", "out=run"]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert "making the base model" not in error
    assert "Traceback" not in error


def test_a_game_of_ones_own_is_shown_to_a_tiny_model(own_games):
    recipe = Recipe.legal_play([own_games], examples=40)
    examples = demonstrate(recipe)
    assert {example.response for example in examples} == {f"<action>{one}</action>" for one in FrozenLake.actions}
    with pytest.raises(ValueError, match="did you mean 'OwnLake-v0'"):
        demonstrate(Recipe.legal_play(["own_games:OwnLakes-v0"]))


def ended(arguments: list[str]) -> int:
    try:
        return main(arguments)
    except SystemExit as stop:  # what the parser of the command line says
        return cast(int, stop.code)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "the name of a recipe"),
        (["--set", "grups=2"], "did you mean 'groups'?"),
        (["--set", "scenarios=frozen-lake"], "model is empty"),
        (["--config", "{config}", "--allow", "evil:A"], "--allow goes with --resume"),
        (["--config", "{config}", "--set", "tokenizer=./none"], "tokenizer = './none' can't be used"),
        (["--config", "{config}", "--set", 'lora_targets=["zzz"]'], "lora_targets = ['zzz'] with lora_rank = 0"),
        (["--config", "{config}", "--set", 'eval_scenarios=["snak"]'], "eval_scenarios: unknown scenario 'snak'"),
        (["--config", "none.toml"], "can't read the config 'none.toml'"),
        (["--config", "tiny-frozen-lak"], "did you mean 'tiny-frozen-lake'?); by name there are"),
        (["--resume", "nowhere"], "nothing to resume in 'nowhere'"),
        (["--config", "{config}", "--set", "model=./none"], "no folder './none'"),
        (["--config", "{config}", "--set", "scenarios=frozen-lak"], "frozen-lake"),
        (["--config", "{config}", "--set", "model=tiny-legal", "--set", "scenarios=mastermind"], "list its actions"),
        (["--config", "{config}", "--set", "model=tiny-legal", "--set", "response_mode=think"], "without reasoning"),
        (["--config", "{config}", "--set", "eval_opponent=random"], "no game that is evaluated on has another seat"),
        (["--config", "{config}", "--set", "model=nowhere", "--set", "credit=missing_module:Mine"], "missing_module"),
        (["--config", "{config}", "--set", "model=nowhere", "--set", "credit.gigpo.step_wieght=1"], "step_weight"),
        (["--config", "tiny-frozen-lake", "--set", "device=cuda:9"], "device"),
        (
            ["--config", "tiny-frozen-lake", "--set", "engine=ray", "--set", 'engine_urls=["http://localhost:8000"]'],
            "engine_urls with engine = 'ray': its workers sample themselves",
        ),
        (["--config", "{config}", "--config", "tiny-frozen-lake"], "--config takes one value and was given"),
        (["--config", "{config}", "--set", "max_response_tokens=4096"], "leaves no room for a prompt"),
    ],
)
def test_bad_input_is_a_sentence_and_exit_code_2_before_a_base_is_made(arguments, words, config_file, capsys):
    assert ended([argument.format(config=config_file) for argument in arguments]) == 2
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
    assert "making the base model" not in said


def test_who_stops_it_while_its_base_is_made_is_told_what_is_kept(tmp_path, monkeypatch, capsys):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("agents.tiny.pretrain", interrupted)
    assert main(["--config", "tiny-frozen-lake", "--set", f"out={tmp_path / 'run'}"]) == 130
    assert "nothing is kept: the same command begins it anew" in capsys.readouterr().err


def test_a_folder_that_holds_a_run_is_refused_before_a_model_is_made(tmp_path, capsys):
    (tmp_path / "metrics.jsonl").write_text("{}\n")
    for said in ("stopped before its first checkpoint", "already holds a run: go on with --resume"):
        assert main(["--config", "tiny-frozen-lake", "--set", f"out={tmp_path}"]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert said in line
        (tmp_path / "last").mkdir(exist_ok=True)


def test_a_second_process_leaves_a_run_alone(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"iteration": 1}\n{"iteration": 2}\n')
    lock = FolderLock(tmp_path)  # as another process holds it while it trains
    resumed = RunLog(MSGRPOConfig(), tmp_path, first=1, quiet=True)
    with pytest.raises(ConfigError, match="is in use by another textbench process"), resumed:
        pass
    assert (tmp_path / "metrics.jsonl").read_text().count("\n") == 2  # the other's second iteration
    lock.release()
    with RunLog(MSGRPOConfig(), tmp_path, first=1, quiet=True):
        assert (tmp_path / "metrics.jsonl").read_text().count("\n") == 1
    with RunLog(MSGRPOConfig(), tmp_path, first=1, quiet=True):  # the folder was let go
        pass


@pytest.mark.parametrize("dtype", ["bfloat16", "auto"])
def test_a_type_that_the_processor_is_slow_in_is_warned_of(dtype, config_file, capsys, monkeypatch):
    monkeypatch.setattr("agents.models.local.loading.load.multiplies_bfloat16", lambda: False)
    changes = ["--set", f"dtype={dtype}", "--set", "device=cpu", "--set", "iterations=1"]
    assert main(["--config", config_file, *changes]) == 0
    told = capsys.readouterr()
    warned = "warning: dtype = 'bfloat16', for which this processor has no instructions" in told.out + told.err
    assert warned == (dtype == "bfloat16")


def test_divergence_is_exit_code_1(config_file, capsys):
    assert main(["--config", config_file, "--quiet", "--set", "abort_grad_norm=1e-9", "--set", "seed=1"]) == 1
    assert "was not applied" in capsys.readouterr().err


class Refusing(Plain):
    """A sampler that can be used with no game."""

    def check(self, task: EpisodeTask) -> None:
        raise ConfigError(f"not on {task.scenario}")


def test_a_method_that_a_game_has_not_what_it_needs_for_is_refused_before_a_base_is_made(tmp_path, capsys):
    config = MSGRPOConfig(
        model="tiny-quick", scenarios=("kuhn-poker",), task_sampling=f"{__name__}:Refusing", out=str(tmp_path / "out")
    )
    (tmp_path / "mine.toml").write_text(config.to_toml())
    assert main(["--config", str(tmp_path / "mine.toml")]) == 2
    assert "not on kuhn-poker" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
