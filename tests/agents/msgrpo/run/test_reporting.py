"""What a training shows and logs: the table in the terminal, lines, sample episodes, and metrics in trackers."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.msgrpo import MSGRPOConfig
from agents.msgrpo.run.evaluating import EvaluationResult, without_success
from agents.msgrpo.run.reporting import RunLog, Trackers
from tests.agents.msgrpo import runs

METRICS = {"success": 0.0, "invalid_rate": 0.0, "entropy": 1.5, "grad_norm": 0.1, "seconds": 2.0}
FIRST = {"iteration": 1, "return": 0.5, **METRICS}
SHORT = replace(runs.SHORT, iterations=2, **runs.ALONE)


@pytest.fixture
def terminal(monkeypatch, capsys):
    """A terminal of 100 columns; called, it gives what was drawn since, frame by frame."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")

    def frames() -> list[str]:
        text = re.sub(r"\x1b\[[0-9]*[AK]", "\n", capsys.readouterr().err)  # a frame is drawn over
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "")
        return ["MS-GRPO iteration" + frame for frame in text.split("MS-GRPO iteration")[1:]]

    return frames


def result(scenario: str, mean: float, success: float = 0.0) -> EvaluationResult:
    return EvaluationResult(scenario, 10, mean, None, None, success, 0.0, 5.0, 0)


def test_the_table_has_trends_and_a_new_evaluation_at_once_beside_the_one_before(terminal):
    config = MSGRPOConfig(iterations=40)
    with RunLog(config, None, games=["a"], without_success=without_success(["matching-pennies"]) | {"a"}) as run:
        for number in range(1, 21):
            run.iteration({"iteration": number, "return": number / 10, **METRICS})
        run.evaluation(10, [result("a", 0.1), result("b", 0.935, 0.9)])
        run.evaluation(20, [result("a", 0.2), result("b", 0.96, 0.95)])
        last = terminal()[-1]  # no later iteration is needed
    (row,) = [line for line in last.splitlines() if "return" in line and "evaluation" not in line]
    assert re.findall(r"\d+\.\d+", row) == ["2.000", "1.550", "0.550"]
    assert "b 0.960 (95.0% success), 0.935 after 10" in last
    assert "a 0.200, 0.100 after 10" in last  # a game without success isn't said to have none
    assert not re.search(r"│ success", last)
    with RunLog(config, None, games=["a", "b"], without_success={"a"}, first=1, history=[FIRST]):
        first = terminal()[-1]  # a resumed run shows the whole table from the start
    assert re.search(r"│ success", first)
    assert first.startswith("MS-GRPO iteration 1 of 40")


def test_samples_say_what_was_learnt_from_an_episode_and_how_it_ended(make_trainer, tmp_path):
    trainer = make_trainer(replace(SHORT, out=str(tmp_path), samples_every=1, samples_shown=8, episodes_drawn=3))
    trainer.train()
    samples = (tmp_path / "samples.txt").read_text().split("=====")[1:]
    assert len(samples) == 2 * 8
    drawn = sum("drawn for the update" in sample and "not drawn" not in sample for sample in samples)
    assert drawn == sum(metrics["episodes_drawn"] for metrics in trainer.history) > 0
    for sample in samples:
        assert re.search(r"ended after [1-4] rounds: (the game was over|cut off by the step limit)\n", sample)
        steps = [float(x) for x in re.findall(r"reward \S+, advantage (\S+)", sample)]
        (mean,) = re.findall(r"player_0: mean advantage (\S+),", sample)
        assert float(mean) == pytest.approx(sum(steps) / len(steps), abs=1e-3)


EVALUATION = EvaluationResult("frozen-lake", 10, 0.7, 0.4, 0.9, 0.7, 0.0, 5.0, 3)


def log(out: Path, first: int, last: int, **settings: Any) -> None:
    """What a run logs of its iterations after ``first`` to ``last``."""
    config = MSGRPOConfig(out=str(out), iterations=9, **settings)
    with RunLog(config, out, first=first, quiet=True) as run:
        if first == 0:
            run.evaluation(0, [EVALUATION])
        for number in range(first + 1, last + 1):
            run.iteration({"iteration": number, **METRICS, "return": number / 4, "skipped": False})


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """``{tag: (step, value) of each event}`` of TensorBoard's files, as TensorBoard reads them."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return {tag: [(one.step, one.value) for one in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def test_tensorboard_has_every_figure_and_a_resume_goes_on(tmp_path):
    out = tmp_path / "run"
    log(out, 0, 3, trackers="tensorboard")
    log(out, 2, 4, trackers="tensorboard")  # stopped in the fourth iteration, its last checkpoint that of the second
    found = scalars(out / "tensorboard")
    assert found["train/return"] == [(1, 0.25), (2, 0.5), (3, 0.75), (4, 1.0)]
    assert {f"train/{name}" for name in METRICS} | {"train/skipped"} <= found.keys()
    assert found["evaluation/frozen-lake/mean_return"] == [(0, pytest.approx(0.7))]
    assert not any(tag.endswith("/iteration") for tag in found)
    assert len(list((out / "tensorboard").glob("events*"))) == 2
    (settings_file,) = (out / "tensorboard").glob("*/hparams.yml")  # of the first process alone
    assert "learning_rate: 1.0e-06" in settings_file.read_text()


def test_a_missing_package_is_said_before_the_run_begins(tmp_path, monkeypatch):
    for package, extra in (("wandb", "wandb"), ("tensorboard", "train")):
        monkeypatch.setitem(sys.modules, package, None)
        monkeypatch.setitem(sys.modules, "tensorboardX", None)
        monkeypatch.delitem(sys.modules, "torch.utils.tensorboard", raising=False)
        monkeypatch.delattr("torch.utils.tensorboard", raising=False)
        with pytest.raises(ModuleNotFoundError, match=rf"'{package}' needs the package .*pip install .*\[{extra}\]"):
            log(tmp_path, 0, 1, trackers=package)
    assert not (tmp_path / "metrics.jsonl").exists()  # so the same command can be given again


class Recording:
    """A tracker that keeps what it is told, or fails in its second step."""

    def __init__(self, fails: bool = False) -> None:
        self.fails, self.logged, self.finished, self.settings = fails, dict[int, Any](), False, dict[str, Any]()

    def store_init_configuration(self, settings: dict[str, Any]) -> None:
        self.settings = settings

    def log(self, values: dict[str, float], step: int) -> None:
        if self.fails and step == 2:
            raise OSError("no space left")
        self.logged[step] = values

    def finish(self) -> None:
        self.finished = True


def test_a_resumed_run_goes_on_in_wandb_s_run_and_its_settings_have_no_secrets(tmp_path, monkeypatch):
    from accelerate.tracking import LOGGER_TYPE_TO_CLASS

    opened, made = list[dict[str, Any]](), list[Recording]()

    def start(**arguments: Any) -> Recording:
        opened.append(arguments)
        made.append(Recording())
        return made[-1]

    monkeypatch.setitem(LOGGER_TYPE_TO_CLASS, "wandb", start)
    secret = {"engine": "vllm", "engine_urls": ["http://me:secret-of-mine@host:8000/v1"]}
    for first, last in ((0, 3), (3, 4)):
        log(tmp_path / "run", first, last, trackers=["wandb"], tracker_project="lake", learning_rate=0.5, **secret)
    assert opened[0] == opened[1]
    assert (opened[0]["run_name"], opened[0]["name"], opened[0]["resume"]) == ("lake", "run", "allow")
    assert opened[0]["id"] == json.loads((tmp_path / "run/trackers.json").read_text())["wandb"]["id"]
    assert (made[0].settings["learning_rate"], made[0].settings["engine_urls"]) == (0.5, "http://host:8000/v1")
    figures = {step: values["train/return"] for one in made for step, values in one.logged.items() if step}
    assert figures == {1: 0.25, 2: 0.5, 3: 0.75, 4: 1.0}
    assert made[0].logged[0]["evaluation/frozen-lake/mean_return"] == 0.7
    assert all(one.finished for one in made)


def test_a_tracker_that_fails_is_left_out_and_the_rest_goes_on(capsys):
    good, bad = Recording(), Recording(fails=True)
    trackers = Trackers({"bad": bad, "good": good})
    for step in (1, 2, 3):
        trackers.log({"a": 1.0}, step)
    trackers.close()
    assert ([*bad.logged], [*good.logged], good.finished) == ([1], [1, 2, 3], True)
    assert "the tracker bad has failed and gets no more metrics (OSError: no space left)" in capsys.readouterr().out
