"""What the experiment consists of: jobs, what each waits for, where its result lies, and what it was made with.

Times are from figures measured on two cores with AVX512-BF16, for a model of 135 million parameters: a training
iteration on Frozen Lake takes 17 s: 32 episodes (about 210 decisions) are played in 12 s, and 16 of them learnt from in
5 s. Imitating a decision there takes at most 0.3 s.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from agents.msgrpo import MSGRPOConfig
from benchmark import UsageError, unknown_name
from benchmark.runs import write_atomically
from research.jobs.folder import Folder
from research.jobs.recipes import ExperimentSettings, differences_of
from research.reproduction.jobs import Pace, episode_seconds, kilocharacters, training_seconds
from research.reproduction.pretrained.settings import ARMS, STARTS, Pretrained, own_settings

Kind = Literal["start", "train", "play"]
MADE_WITH = "settings.json"
RUN = "run"  # the folder of a training below that of its job


class PretrainedJob(NamedTuple):
    """A piece of work for one process; what doesn't apply to its kind is empty."""

    name: str  # unique, and the path of its result below the folder: ``"train/lake/0"``
    kind: Kind  # which function of :mod:`work` does it
    part: str  # of the experiment; a warm start belongs to the first part that needs it
    about: str  # the name of the warm start, the arm or the player
    needs: tuple[str, ...] = ()  # names of the jobs that must be done before
    seed: int = 0
    scenario: str = ""  # that is played


def jobs_of(experiment: Pretrained) -> list[PretrainedJob]:
    """Return all jobs, part by part, and there seed by seed: what is cut short has all arms with fewer seeds."""
    jobs: dict[str, PretrainedJob] = {}
    for part in experiment.parts:
        arms = {name: arm for name, arm in experiment.arms.items() if arm.part == part}
        for seed in range(max((arm.seeds for arm in arms.values()), default=0)):
            for name, arm in arms.items():
                if seed < arm.seeds:
                    _add(jobs, experiment, f"train/{name}/{seed}", part)
        for name, player in experiment.everyone.items():
            if player.part != part:
                continue
            slug = "".join(letter if letter.isalnum() or letter in "-._" else "-" for letter in name)
            made = player.agent.removeprefix(ARMS).removeprefix(STARTS)
            source = "" if made == player.agent else made
            most = (experiment.starts.get(source) or experiment.arms[source]).seeds if source else 0
            for seed in range(min(most, player.seeds or most) or 1):
                needs = model_needs(experiment, source, seed)
                for need in needs:
                    _add(jobs, experiment, need, part)
                for scenario in player.scenarios:
                    job = f"play/{slug}/{seed}/{scenario}"
                    jobs.setdefault(job, PretrainedJob(job, "play", part, name, needs, seed, scenario))
    return list(jobs.values())


def chosen(jobs: Sequence[PretrainedJob], parts: Sequence[str], experiment: Pretrained) -> list[PretrainedJob]:
    """Return the jobs of some parts, and those that they wait for; a UsageError if there is no such part."""
    for part in parts:
        if part not in experiment.parts:
            raise unknown_name("part in this recipe", part, experiment.parts)
    by_name = {job.name: job for job in jobs}
    wanted = [job.name for job in jobs if job.part in parts]
    for name in wanted:  # it grows while it is read
        wanted += [need for need in by_name[name].needs if need not in wanted]
    return [job for job in jobs if job.name in wanted]


def _add(jobs: dict[str, PretrainedJob], experiment: Pretrained, name: str, part: str) -> None:
    """Add the job of that name, after those that it needs."""
    kind, about, *seeds = name.split("/")
    seed = int(seeds[0]) if seeds else 0
    if name in jobs:
        return
    if kind == "start":
        jobs[name] = PretrainedJob(name, "start", part, about, seed=seed)
        return
    own = experiment.arms[about]
    needs = (*model_needs(experiment, own.start, seed), *model_needs(experiment, own.like, seed))
    for need in needs:
        _add(jobs, experiment, need, part)
    jobs[name] = PretrainedJob(name, "train", own.part, about, needs, seed)


def model_needs(experiment: Pretrained, source: str, seed: int) -> tuple[str, ...]:
    """Return the job that makes what a training begins from: a warm start, or a run of the same seed if it has that."""
    if not source:
        return ()
    own = experiment.starts.get(source) or experiment.arms[source]
    own_seed = seed if seed < own.seeds else 0
    if source in experiment.starts:
        return (f"start/{source}/{own_seed}" if own.seeds else f"start/{source}",)
    return (f"train/{source}/{own_seed}",)


def settings_of(job: PretrainedJob, experiment: Pretrained) -> dict[str, Any]:
    """Return everything that decides a job's result, that of what it needs included, as plain data."""
    own: dict[str, Any]
    if job.kind == "start":
        config = experiment.imitation_config(job.about, job.seed)
        own = {**experiment.starts[job.about].model_dump(exclude={"seeds"}), "imitation": own_settings(config)}
    elif job.kind == "train":
        arm = experiment.arms[job.about]
        own = {**arm.model_dump(exclude={"part", "seeds"}), "msgrpo": experiment.training_settings(job.about, job.seed)}
        if arm.trainer == "trl":
            own |= {name: getattr(experiment, name) for name in ("steps_per_episode", "micro_batch")}
    else:
        player = experiment.everyone[job.about]
        shared = ("dtype", "episodes", "first_episode", "temperature", "max_tokens", "mode")
        own = {**{name: getattr(experiment, name) for name in shared}, **player.model_dump(exclude={"part", "seeds"})}
        own["scenarios"] = [job.scenario]
    made: dict[str, PretrainedJob] = {}
    for need in job.needs:
        _add(made, experiment, need, job.part)
    needs = {need: settings_of(made[need], experiment) for need in job.needs}
    data: dict[str, Any] = json.loads(json.dumps({"model": experiment.model, **own, "needs": needs}))
    return data


class _Folder(ExperimentSettings):
    """What the folder as a whole is known by: jobs have settings of their own."""

    kind: Literal["pretrained"] = "pretrained"
    model: str


class PretrainedFolder(Folder):
    """The folder of one experiment.

    Each job keeps what it was made with beside its result. So a recipe may change while it is run: what isn't begun
    yet is free, what was only begun begins anew, and a result that was made with other settings is refused by name.
    """

    def claim(self, experiment: Any) -> None:
        """Make the folder this experiment's, or check that what is there was made with these settings."""
        super().claim(_Folder(model=experiment.model))
        for job in jobs_of(experiment):
            if self.is_done(job.name):
                differences = self.differences(job, experiment)
                for name, (now, then) in differences.items():
                    raise UsageError(
                        f"{self.path / job.name} was made with {name} = {then!r}, now it is {now!r}: put it back, "
                        "remove that folder to have it made anew, or choose another --out"
                    )

    def differences(self, job: PretrainedJob, experiment: Pretrained) -> dict[str, tuple[Any, Any]]:
        """Return ``{setting: (now, then)}`` of what differs since a job was begun; nested ones with dots."""
        file = self.path / job.name / MADE_WITH
        then = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        return differences_of(settings_of(job, experiment), then)

    def begin(self, job: PretrainedJob, experiment: Pretrained) -> None:
        """Make the folder of a job that has no result; what was begun with other settings is removed."""
        place = self.path / job.name
        if place.exists() and self.differences(job, experiment):
            shutil.rmtree(place)
        place.mkdir(parents=True, exist_ok=True)
        write_atomically(place / MADE_WITH, json.dumps(settings_of(job, experiment), indent=1) + "\n")

    def model_of(self, need: str) -> Path:
        """Return the folder of the model that a warm start or a training has made."""
        return self.path / need / ("model" if need.startswith("start/") else f"{RUN}/last")


PACE = Pace(sample=0.05, learn=0.045, imitate=0.25)
TOKEN = 0.004  # seconds a token of a response beyond the twelve that the figures above have in them
TRL = 10.0  # how many times longer TRL's trainer takes for an episode: the goal that the measurement is held against
LOAD = 10.0  # seconds until a job begins
ONE_THREAD = 1.45  # times as long as both cores: the draws of credit-pretrained took 156 s a batch of 128 episodes


def typical_seconds(experiment: Pretrained, jobs: Sequence[PretrainedJob]) -> Mapping[str, float]:
    """Return ``{job: seconds}`` of wall time to begin with, on a machine of the recipe's speed."""
    seconds: dict[str, float] = {}
    for job in jobs:  # those that are needed come before
        seconds[job.name] = LOAD + _seconds(experiment, job, seconds) / experiment.speed
    return seconds


def _seconds(experiment: Pretrained, job: PretrainedJob, known: Mapping[str, float]) -> float:
    """Return the seconds of a job on two cores, once its model is loaded."""
    if job.kind == "start":
        start, config = experiment.starts[job.about], experiment.imitation_config(job.about, job.seed)
        text = float(np.mean([kilocharacters(name) for name in start.scenarios]))
        return start.examples * config.update_passes * (PACE.imitate * text + _more_tokens(config))
    if job.kind == "train":
        arm = experiment.arms[job.about]
        if arm.trainer == "trl":
            like = known[next(need for need in job.needs if need.startswith(f"train/{arm.like}/"))]
            return like * experiment.speed * (TRL if arm.equal == "episodes" else 1.0)
        config = MSGRPOConfig.from_mapping(experiment.training_settings(job.about, job.seed))
        return training_seconds(config, experiment.scenarios_of(job.about), PACE._replace(form=_more_tokens(config)))
    player = experiment.everyone[job.about]
    if not job.needs and player.agent in ("random", "blind", "greedy", "planner"):
        return 0.0
    longer = 1 + 0.3 * player.shown  # of the texts of a prompt that tells so many examples
    thinks = player.options.get("mode", experiment.mode) == "think"
    seconds = episode_seconds(job.scenario, PACE.sample * longer, 100 * TOKEN if thinks else 0.0)
    return (player.episodes or experiment.episodes) * seconds


def batch_seconds(scenario: str, episodes: int) -> float:
    """Return seconds of one thread for some episodes, and for two passes over all that was played in them."""
    return ONE_THREAD * episodes * episode_seconds(scenario, PACE.sample + 2 * PACE.learn)


def _more_tokens(config: MSGRPOConfig) -> float:
    """Return seconds a decision for a response that isn't short; half of what may be written is."""
    return TOKEN * max(0.0, config.max_response_tokens / 2 - 12)
