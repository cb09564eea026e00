"""Metrics in TensorBoard and in Weights & Biases (offline): the real clients, and what they have written read again."""

import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.msgrpo import MSGRPOConfig
from agents.msgrpo.configuration.settings import TrackerName
from agents.msgrpo.errors import ConfigError
from agents.msgrpo.run.evaluating import EvaluationResult
from agents.msgrpo.run.reporting import RunLog, Trackers

ROOT = Path(__file__).parents[4]

METRICS = {"return": 0.5, "success": 0.25, "invalid_rate": 0.0, "entropy": 1.5, "grad_norm": 0.1, "seconds": 2.0}
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


def wandb_records(out: Path) -> Iterator[Any]:
    """The records of all offline runs in a folder: files in the format of LevelDB's log, in blocks of 32 kB."""
    from wandb.proto.wandb_internal_pb2 import Record

    for file in sorted(out.glob("wandb/offline-run-*/*.wandb"), key=lambda file: file.stat().st_mtime_ns):
        data, place, whole = file.read_bytes(), 7, b""
        while place + 7 <= len(data):
            left = 32768 - place % 32768
            _, length, kind = struct.unpack("<IHB", data[place : place + 7]) if left >= 7 else (0, 0, 0)
            if kind == 0:
                place += left
                continue
            whole += data[place + 7 : place + 7 + length]
            place += 7 + length
            if kind in (1, 4):  # a whole record, or its last part
                record = Record()
                record.ParseFromString(whole)
                whole = b""
                yield record


LOG_IN_A_PROCESS = """
import sys
from pathlib import Path
from tests.agents.msgrpo.run.test_trackers import log
log(Path("first"), int(sys.argv[1]), int(sys.argv[2]), trackers=["wandb"], tracker_project="lake", learning_rate=0.5,
    engine="vllm", engine_urls=["http://me:secret-of-mine@host:8000/v1"])
"""


@pytest.mark.slow
def test_wandb_offline_has_every_figure_and_a_resume_is_the_same_run(tmp_path):
    pytest.importorskip("wandb", reason="wandb isn't installed (extra wandb)")
    environment = {**os.environ, "WANDB_MODE": "offline", "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    for first, last in ((0, 3), (3, 4)):
        done = subprocess.run(
            [sys.executable, "-c", LOG_IN_A_PROCESS, str(first), str(last)],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout == ""
    records = list(wandb_records(tmp_path / "first"))
    runs = [record.run for record in records if record.WhichOneof("record_type") == "run"]
    assert {(run.run_id, run.display_name, run.project) for run in runs} == {
        (json.loads((tmp_path / "first/trackers.json").read_text())["wandb"]["id"], "first", "lake")
    }
    assert len(list((tmp_path / "first/wandb").glob("offline-run-*"))) == 2
    config = {
        item.key: json.loads(item.value_json)
        for record in records
        if record.WhichOneof("record_type") == "config"
        for item in record.config.update
    }
    assert config["learning_rate"] == 0.5
    assert config["engine_urls"] == "http://host:8000/v1"
    assert not any(
        "secret-of-mine" in file.read_text(errors="replace") for file in tmp_path.rglob("*") if file.is_file()
    )
    history: dict[int, dict[str, Any]] = {}
    for record in records:
        if record.WhichOneof("record_type") == "history":
            items = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
            history.setdefault(record.history.step.num, {}).update(items)
    assert {step: values.get("train/return") for step, values in history.items()} == {
        0: None,
        1: 0.25,
        2: 0.5,
        3: 0.75,
        4: 1.0,
    }
    assert history[0]["evaluation/frozen-lake/mean_return"] == 0.7
    assert history[4]["train/entropy"] == 1.5


def test_a_missing_package_is_said_before_the_run_begins(tmp_path, monkeypatch):
    for package, extra in (("wandb", "wandb"), ("tensorboard", "train")):
        monkeypatch.setitem(sys.modules, package, None)
        monkeypatch.setitem(sys.modules, "tensorboardX", None)
        monkeypatch.delitem(sys.modules, "torch.utils.tensorboard", raising=False)
        monkeypatch.delattr("torch.utils.tensorboard", raising=False)
        with pytest.raises(ModuleNotFoundError, match=rf"'{package}' needs the package .*pip install .*\[{extra}\]"):
            log(tmp_path, 0, 1, trackers=package)
    assert not (tmp_path / "metrics.jsonl").exists()  # so the same command can be given again


def test_a_tracker_that_fails_is_left_out_and_the_rest_goes_on(capsys):
    class Recording:
        def __init__(self, fails: bool) -> None:
            self.fails, self.steps, self.finished = fails, list[int](), False

        def log(self, values: dict[str, float], step: int) -> None:
            if self.fails and step == 2:
                raise OSError("no space left")
            self.steps.append(step)

        def finish(self) -> None:
            self.finished = True

    good, bad = Recording(False), Recording(True)
    trackers = Trackers({"bad": bad, "good": good})
    for step in (1, 2, 3):
        trackers.log({"a": 1.0}, step)
    trackers.close()
    assert (bad.steps, good.steps, good.finished) == ([1], [1, 2, 3], True)
    assert "the tracker bad has failed and gets no more metrics (OSError: no space left)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"trackers": ["wanb"], "out": "r"}, r"trackers must be a list of tensorboard, wandb,.*, got \['wanb'\]"),
        ({"trackers": ["wandb"]}, r"trackers = \['wandb'\] without a folder of the run: set out as well"),
    ],
)
def test_trackers_that_cant_be_used_are_said(settings, message):
    with pytest.raises(ConfigError, match=message):
        MSGRPOConfig(**settings)


def test_the_names_are_those_of_accelerate():
    from accelerate.tracking import LOGGER_TYPE_TO_CLASS

    assert set(TrackerName.__args__) <= set(map(str, LOGGER_TYPE_TO_CLASS))  # type: ignore[attr-defined]
