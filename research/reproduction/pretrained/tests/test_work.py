"""Every kind of job of the experiment with a pretrained model, done by a tiny one; stopped, killed and gone on with."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("peft")

from agents import EpisodeTask, load_agent, rollout
from agents.msgrpo import MSGRPOConfig
from agents.msgrpo.rollouts import layout_of
from research.jobs import work as engine
from research.jobs.work import Report
from research.reproduction.pretrained import work as work_module
from research.reproduction.pretrained.findings import read_findings
from research.reproduction.pretrained.jobs import RUN, PretrainedFolder, PretrainedJob, jobs_of
from research.reproduction.pretrained.report import report_data, report_markdown
from research.reproduction.pretrained.settings import Pretrained
from research.reproduction.pretrained.tests.helpers import make_model, write_recipe
from research.reproduction.pretrained.work import WORK

pytestmark = pytest.mark.slow  # all jobs are done, once

MEASURED = ("seconds", "processor_seconds", "training_seconds", "training_processor_seconds", "play_processor_seconds")


def nothing(share: float) -> None:
    pass


def do(job: PretrainedJob, experiment: Pretrained, folder: PretrainedFolder, report: Report) -> None:
    engine.do(WORK[job.kind], job, experiment, folder, report)


class Done:
    """An experiment with all of its jobs done, but those of TRL."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.model = make_model(place / "pretrained")
        self.experiment = Pretrained.read(write_recipe(place, self.model), {"rivals": ["random"]})
        self.folder = PretrainedFolder(place / "out")
        self.folder.claim(self.experiment)
        self.jobs = {job.name: job for job in jobs_of(self.experiment) if "trl" not in job.name.lower()}
        self.shares: dict[str, list[float]] = {}
        for job in self.jobs.values():
            do(job, self.experiment, self.folder, self.shares.setdefault(job.name, []).append)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return Done(tmp_path_factory.mktemp("pretrained"))


@pytest.fixture
def again(done, tmp_path):
    shutil.copytree(done.folder.path, tmp_path / "out", symlinks=True)
    return PretrainedFolder(tmp_path / "out")


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: bare(item) for key, item in value.items() if key not in MEASURED}
        return [bare(item) for item in value] if isinstance(value, list) else value

    return json.dumps(bare(one)) == json.dumps(bare(other))


def test_every_job_leaves_a_result_and_tells_how_far_it_is(done):
    for name in done.jobs:
        result = done.folder.result(name)
        assert result["seconds"] > 0
        assert result["facts"]["textbench"]
        assert done.shares[name][-1] == 1
        assert done.shares[name] == sorted(done.shares[name])


def test_a_view_holds_for_the_fresh_episodes_too(done, again):
    job, players = done.jobs["play/trained/0/frozen-lake"], dict(done.experiment.players)
    players[job.about] = players[job.about].model_copy(update={"view": {"grid": False}})
    again.result_file(job.name).unlink()
    do(job, done.experiment.model_copy(update={"players": players}), again, nothing)
    steps = [sum(folder.result(job.name)["lengths"]) for folder in (again, done.folder)]
    tokens = [folder.result(job.name)["tokens"]["prompt"] for folder in (again, done.folder)]
    assert tokens[0] / steps[0] < tokens[1] / steps[1] - 5  # of the grid that is left out


def test_a_run_keeps_its_curve_and_the_layouts_before_it(done):
    run, start = done.folder.result("train/plain/0"), done.folder.result("start/few")
    assert [point[0] for point in run["evaluations"]] == [0, 2]
    assert len(run["history"]) == 2
    assert set(start["layouts"]) < set(run["layouts"])
    assert run["training_processor_seconds"] > 0
    assert run["settings"]["learning_rate"] == 0.002
    assert done.folder.result("train/alone/0")["began"] == ""
    kept = MSGRPOConfig.from_toml(done.folder.model_of("train/alone/0") / "msgrpo.toml")
    assert (kept.min_valid_share, kept.stop_after, kept.eval_protocol) == (0.0, 0, "random")


def test_fresh_episodes_know_which_layouts_training_drew(done, again):
    played = done.folder.result("play/trained/0/frozen-lake")
    assert played["first_seed"] == 11_000
    assert len(played["returns"]) == len(played["unseen"]) == 4
    assert played["tokens"]["prompt"] > 100
    assert done.folder.result("play/base/0/frozen-lake")["unseen"] == [1, 1, 1, 1]
    everything = again.result("train/plain/0")
    (again.result_file("play/trained/0/frozen-lake")).unlink()
    tasks = [EpisodeTask.of("frozen-lake", 11_000 + k) for k in range(2)]
    layouts = [layout_of(episode) for episode in rollout(load_agent("random"), tasks)]
    again.write_result("train/plain/0", everything | {"layouts": layouts})
    do(done.jobs["play/trained/0/frozen-lake"], done.experiment, again, nothing)
    assert again.result("play/trained/0/frozen-lake")["unseen"] == [0, 0, 1, 1]


def test_protocol_history_and_examples_reach_the_player(done, again, monkeypatch):
    seen: dict[str, Any] = {}

    def watched(policy: Any, tasks: Any, **options: Any) -> Any:
        seen.update(policy=policy, tasks=list(tasks))
        return rollout(policy, seen["tasks"], **options)

    monkeypatch.setattr(work_module, "rollout", watched)
    again.result_file("play/base--retry-1/0/frozen-lake").unlink()
    do(done.jobs["play/base--retry-1/0/frozen-lake"], done.experiment, again, nothing)
    assert len(seen["tasks"]) == 2
    assert seen["tasks"][0].retries == 1
    assert seen["policy"].prompt_map.history_turns == 1
    assert seen["policy"].prompt_map.texts.system.count("A good answer:\n<action>") == 2
    assert seen["policy"].decoding.max_tokens == 4


class Killed(BaseException):
    """What ends a process at once, and nothing catches."""


def stop_at(error: type[BaseException], times: int) -> Callable[[float], None]:
    """A report that ends a job at its n-th call."""
    calls = iter(range(times))

    def report(share: float) -> None:
        if next(calls, None) is None:
            raise error

    return report


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (Killed, "train/plain/0"),
        (Killed, "play/trained/0/frozen-lake"),
        (Killed, "start/few"),
        (KeyboardInterrupt, "train/plain/0"),
    ],
)
def test_a_stopped_job_ends_as_if_nothing_had_happened(name, error, done, again, monkeypatch):
    shutil.rmtree(again.path / name)
    if error is Killed:  # a process that is killed rescues nothing
        monkeypatch.setattr("agents.msgrpo.run.saving.Keeper.rescue", lambda keeper, error: "")
    with pytest.raises(error):
        do(done.jobs[name], done.experiment, again, stop_at(error, 1))
    monkeypatch.undo()
    assert not again.is_done(name)
    do(done.jobs[name], done.experiment, again, nothing)
    one, other = done.folder.result(name), again.result(name)
    assert same(one, other)


def test_the_report_of_it_has_figures_and_says_what_is_missing(done):
    findings = read_findings(done.experiment, done.folder)
    text = report_markdown(findings, {"textbench": "1"}, command="textbench reproduce --config recipe.toml")
    data = report_data(findings, {"textbench": "1"})
    assert "| The lake | `textbench reproduce --config recipe.toml --parts main` | done |" in text
    assert {row["player"] for row in data["fresh"]} >= {"base", "trained", "random", "imitation"}
    assert len(data["missing"]) == 3
    assert np.isfinite([row["value"] for row in data["fresh"]]).all()


@pytest.mark.filterwarnings("ignore")  # TRL's own calls of what transformers has renamed
@pytest.mark.parametrize("equal", ["episodes", "seconds"])
def test_trls_grpo_is_as_long_as_the_run_that_it_equals(equal, done, again):
    pytest.importorskip("trl")
    name = f"train/trl-{equal}/0"
    (job,) = [job for job in jobs_of(done.experiment) if job.name == name]
    like = again.result("train/plain/0")
    history = like["history"] * 4
    again.write_result("train/plain/0", like | {"training_processor_seconds": 5.0, "history": history})
    with pytest.raises(KeyboardInterrupt):
        do(job, done.experiment, again, stop_at(KeyboardInterrupt, 6))
    before = json.loads((again.path / name / RUN / "spent.5.json").read_text())
    do(job, done.experiment, again, nothing)
    result = again.result(name)
    assert result["history"][:5] == before["history"]  # what was done wasn't done again
    if equal == "episodes":
        assert [metrics["iteration"] for metrics in result["history"]] == list(range(1, 9))
    else:
        assert result["training_processor_seconds"] >= 5
    assert 0 <= result["history"][-1]["success"] <= 1
    assert set(again.result("start/few")["layouts"]) < set(result["layouts"])
    assert (again.model_of(name) / "adapter_config.json").exists()
    play = PretrainedJob("play/TRL-s/0/frozen-lake", "play", "baseline", "TRL's", (name,), 0, "frozen-lake")
    if equal == "episodes":
        do(play, done.experiment, again, nothing)
        assert len(again.result(play.name)["returns"]) == 4
