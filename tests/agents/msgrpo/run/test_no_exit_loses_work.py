"""However a run ends early, its last valid state is saved, and the command that goes on works."""

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from agents.msgrpo import ConfigError, MSGRPOTrainer, load_state, main
from agents.msgrpo.errors import TrainingDivergedError
from agents.msgrpo.run.saving import STATE, check_sums
from tests.agents.msgrpo import runs
from tests.agents.msgrpo.runs import MOVING, same_weights, untimed
from tests.faults import broken, faults, files_of_at_most, full

SHORT = replace(runs.SHORT, groups=4, group_size=8, iterations=5, minibatches=2, checkpoint_every=0, **runs.ALONE)


def metrics_in(run: Path) -> list[dict[str, Any]]:
    file = run / "metrics.jsonl"
    lines = file.read_text().splitlines(keepends=True) if file.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def started(arguments: list[str], **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "agents.msgrpo", *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)


def wait_for_iterations(run: Path, count: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while len(metrics_in(run)) < count:
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.01)


# ---------------------------------------------------------------- signals, sent to real processes


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, 3])
def test_a_polite_kill_saves_the_run_and_the_printed_command_goes_on(kills, tiny_config, tmp_path):
    """The run is under nohup, and outlives its terminal; a second kill doesn't stop the saving."""
    file, run = tiny_config(iterations="400"), tmp_path / "run"
    process = started(["--config", file], preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    wait_for_iterations(run, 2, process)
    process.send_signal(signal.SIGHUP)
    wait_for_iterations(run, len(metrics_in(run)) + 1, process)
    for _ in range(kills):
        process.send_signal(signal.SIGTERM)
        time.sleep(0.005)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    saved, played = load_state((run / "last").resolve()), metrics_in(run)
    assert saved["iteration"] == len(played) >= 3
    assert saved["history"] == played
    assert not list((run / "checkpoints").glob(".*.draft"))
    if kills == 1:
        assert "Traceback" not in told
        (command,) = re.findall(r"to go on: python -m agents\.msgrpo (.*)", told)
        more = ["--quiet", "--set", f"iterations={saved['iteration'] + 1}"]
        assert main([*shlex.split(command), *more]) == 0
        assert main(["--config", file, *more, "--set", f"out={tmp_path / 'whole'}"]) == 0
        assert untimed(metrics_in(run)) == untimed(metrics_in(tmp_path / "whole"))


# ---------------------------------------------------------------- errors, within an update and outside of it


def break_at(trainer: MSGRPOTrainer, iteration: int, error: Exception, *, step: int | None) -> None:
    """Raise in an iteration: in its rollout, or in the update, before that optimiser step."""
    taken = 0
    clip, rollout = trainer.processes.clip_grad_norm, trainer.rollout

    def failing_step(*arguments: Any) -> float:
        nonlocal taken
        if trainer.iteration == iteration:
            taken += 1
            if step is not None and taken > step:
                raise error
        return clip(*arguments)

    def failing_rollout() -> Any:
        if trainer.iteration == iteration and step is None:
            raise error
        return rollout()

    trainer.processes.clip_grad_norm = failing_step  # type: ignore[method-assign]
    trainer.rollout = failing_rollout  # type: ignore[method-assign]


@pytest.mark.parametrize("step", [None, 1], ids=["in a rollout", "between two steps of an update"])
def test_after_any_error_the_resumed_run_equals_the_one_without_it(make_trainer, tmp_path, step):
    config = replace(SHORT, credit=MOVING)  # which remembers, from one iteration to the next
    whole = make_trainer(config)
    whole.train()
    broken = make_trainer(replace(config, out=str(tmp_path / "run")))
    break_at(broken, 2, ZeroDivisionError("a bug"), step=step)
    with pytest.raises(ZeroDivisionError) as error:
        broken.train()
    (note,) = error.value.__notes__
    assert "The state after iteration 2 is saved" in note
    assert f"trainer.resume('{tmp_path / 'run'}')" in note  # no command line knows this model and these prompts
    assert "python -m" not in note
    resumed = make_trainer(replace(config, out=str(tmp_path / "run")), resume=tmp_path / "run")
    resumed.train()
    assert untimed(whole.history) == untimed(resumed.history)
    assert same_weights(whole, resumed)


@pytest.mark.parametrize("lora", [0, 4])
def test_a_divergence_in_the_second_step_saves_the_weights_from_before_the_first(make_trainer, tmp_path, lora):
    config = replace(SHORT, out=str(tmp_path / "run"), lora_rank=lora, iterations=2)
    trainer = make_trainer(config)
    before = [parameter.detach().clone() for parameter in trainer.model.parameters()]
    clip, norms = trainer.processes.clip_grad_norm, []

    def second_is_nan(*arguments: Any) -> float:
        norms.append(clip(*arguments))
        return float("nan") if len(norms) == 2 else norms[-1]

    trainer.processes.clip_grad_norm = second_is_nan
    with pytest.raises(TrainingDivergedError) as error:
        trainer.train()
    assert "The state after iteration 0 is saved" in error.value.__notes__[0]
    assert not all(map(torch.equal, before, trainer.model.parameters()))  # the first step was taken
    resumed = make_trainer(replace(config, learning_rate=1e-4), resume=tmp_path / "run")
    assert all(map(torch.equal, before, resumed.model.parameters()))
    assert len(resumed.train()) == 2


def test_without_a_copy_a_broken_update_goes_back_to_the_last_checkpoint(make_trainer, tmp_path):
    config = replace(SHORT, out=str(tmp_path / "run"), rollback=False, checkpoint_every=2)
    trainer = make_trainer(config)
    break_at(trainer, 3, ZeroDivisionError("a bug"), step=1)
    with pytest.raises(ZeroDivisionError) as error:
        trainer.train()
    assert "The state after iteration 2 is saved" in error.value.__notes__[0]
    early = make_trainer(replace(config, out=str(tmp_path / "early")))
    break_at(early, 0, ZeroDivisionError("a bug"), step=1)
    with pytest.raises(ZeroDivisionError) as error:
        early.train()
    assert "Nothing was saved, and there is no earlier checkpoint" in error.value.__notes__[0]


# ---------------------------------------------------------------- disks


def test_a_full_disk_is_one_sentence_and_leaves_the_checkpoint_before_and_nothing_of_the_new_one(
    tiny_config, tmp_path, capsys
):
    arguments, run = ["--config", tiny_config(iterations="2", checkpoint_every="1"), "--quiet"], tmp_path / "run"
    with files_of_at_most(200_000):
        assert main(arguments) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert sentence.startswith(f"error: the checkpoint {run / 'checkpoints/iteration-000001'} can't be written")
    assert "Nothing was saved" in sentence
    assert not list((run / "checkpoints").iterdir())
    shutil.rmtree(run)
    assert main([*arguments, "--set", "iterations=1"]) == 0
    with files_of_at_most(200_000):
        assert main(["--resume", str(run), "--set", "iterations=2", "--quiet"]) == 2
    assert "The state after iteration 1 is saved; to go on: python -m" in capsys.readouterr().err
    assert [path.name for path in (run / "checkpoints").iterdir()] == ["iteration-000001"]


@pytest.mark.parametrize(
    ("out", "words"),
    [
        ("/proc/textbench", "can't use /proc: "),
        ("{file}/below", "Not a directory"),
        ("{tmp_path}/" + "x" * 300, "File name too long"),
    ],
)
def test_a_folder_that_cannot_be_written_is_told_before_the_model_is_loaded(out, words, tiny_config, tmp_path, capsys):
    file = tiny_config(model='"nowhere"')
    out = out.format(file=file, tmp_path=tmp_path)
    assert main(["--config", file, "--set", f"out={out}"]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert len(error.splitlines()) == 1


# ---------------------------------------------------------------- faults at every call that writes


FAULTY = replace(runs.SHORT, iterations=2, checkpoint_every=1, keep_checkpoints=1, samples_every=1, **runs.ALONE)


@pytest.mark.parametrize(
    ("happen", "lasting", "stride"),
    [
        (full, False, 45),
        pytest.param(broken, True, 20, marks=pytest.mark.slow),
        pytest.param(full, True, 20, marks=pytest.mark.slow),
        pytest.param(full, False, 1, marks=pytest.mark.nightly),
        pytest.param(broken, False, 3, marks=pytest.mark.nightly),
    ],
)
def test_a_training_keeps_a_whole_checkpoint_and_ends_as_if_nothing_had_happened(
    make_trainer, tmp_path, happen, lasting, stride
):
    out = tmp_path / "out"
    config = replace(FAULTY, out=str(out))
    with faults(out) as counting:
        make_trainer(config).train()
    whole, calls = metrics_in(out), counting.calls
    assert {"open", "file.write", "fsync", "replace", "rename", "symlink", "rmdir"} <= set(calls)
    stopped = 0
    for at in range(2, len(calls) + 1, stride):
        what = at, calls[at - 1]
        shutil.rmtree(out)
        try:
            with faults(out, at, happen, lasting=lasting):
                make_trainer(config).train()
        except (OSError, ConfigError):  # which the command says in a sentence
            stopped += 1
        for name in ("last", "best"):
            if (out / name).exists():
                check_sums(out / name)
                assert load_state(out / name)["iteration"] in (0, 1, 2)
        if (out / "last" / STATE).exists():
            trainer = make_trainer(config, resume=out)
        else:
            shutil.rmtree(out, ignore_errors=True)  # as it is told: there was no checkpoint yet
            trainer = make_trainer(config)
        trainer.train()
        assert untimed(metrics_in(out)) == untimed(whole), what
        assert [path.name for path in (out / "checkpoints").iterdir()] == ["iteration-000002"], what
    assert stopped > 0.7 * len(range(2, len(calls) + 1, stride))
