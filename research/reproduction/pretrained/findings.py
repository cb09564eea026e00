"""What the experiment has found so far, read from its folder: figures with intervals, from which reports are made.

Sources of chance are the training run (its seed) and the episode: intervals of several runs are over both
(:func:`research.jobs.intervals.mean_over_runs`), and differences of two trained arms are paired by seed. A figure of
one player has an interval over its episodes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from agents.common import Array, Estimate, mean_estimate, student
from research.jobs.intervals import difference_of_means, mean_over_runs
from research.reproduction.pretrained.jobs import PretrainedFolder, PretrainedJob, jobs_of
from research.reproduction.pretrained.settings import Pretrained, seen
from textgames import SCENARIOS
from textgames.solving import blind_play


class Fresh(NamedTuple):
    """The fresh episodes of one player in one scenario; arrays of shape (runs, episodes)."""

    returns: Array
    successes: Array
    unseen: Array  # 1 if the layout of an episode is none that this run's training had drawn
    invalid: float  # share of responses
    runs: int  # how many there are to be
    possible: tuple[float, ...] = ()  # the least and the largest return, if the game knows them

    @property
    def value(self) -> Estimate:
        """The mean return with its interval; in a game that pays 1 for success alone it is the success rate."""
        return mean_over_runs(self.returns, self.possible)

    @property
    def worst(self) -> float:
        """The mean return of the worst run."""
        return float(self.returns.mean(axis=1).min())

    @property
    def on_unseen(self) -> tuple[float, int]:
        """The mean return on layouts that training had never drawn, and how many episodes of a run these are."""
        count = float(self.unseen.sum())
        mean = float((self.returns * self.unseen).sum() / count) if count else float("nan")
        return mean, round(count / len(self.unseen))


class Trained(NamedTuple):
    """What one training run of an arm reached."""

    seed: int
    success: Array  # of each iteration, of the episodes that it learnt from
    entropy: Array  # of each iteration, nats a token; NaN if it isn't told
    points: list[tuple[int, float, float]]  # of every evaluation: iterations done, success, mean return
    seconds: float  # of the processor, without evaluations
    tokens: int


@dataclass(frozen=True)
class Findings:
    """Everything that was found so far."""

    experiment: Pretrained
    starts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # results of warm starts: NAME or NAME/SEED
    runs: Mapping[str, list[Trained]] = field(default_factory=dict)  # by arm
    fresh: Mapping[tuple[str, str], Fresh] = field(default_factory=dict)  # by player and scenario
    jobs: tuple[PretrainedJob, ...] = ()
    missing: tuple[str, ...] = ()  # names of the jobs without a result
    seconds: float = 0.0  # of all jobs that are done
    code: tuple[str, ...] = ()  # the versions that did them

    def missing_of(self, part: str) -> tuple[int, int]:
        """Return how many jobs of a part have no result, and how many it has."""
        own = [job.name for job in self.jobs if job.part == part]
        return sum(name in self.missing for name in own), len(own)

    def difference(self, first: str, second: str, scenario: str) -> tuple[Estimate, str] | None:
        """By how much one player is better than another, and what that rests on; ``None`` if it isn't known yet."""
        one, other = self.fresh.get((first, scenario)), self.fresh.get((second, scenario))
        if one is None or other is None or one.returns.shape[1] != other.returns.shape[1]:
            return None
        ours, theirs = one.returns, other.returns
        if len(ours) > 1 and len(theirs) > 1:
            seeds = min(len(ours), len(theirs))
            differences = ours[:seeds].mean(axis=1) - theirs[:seeds].mean(axis=1)
            return student(differences), f"{seeds} pairs of runs"
        if len(ours) > 1:
            return difference_of_means(ours, theirs[0]), f"{len(ours)} runs of {ours.shape[1]} episodes"
        if len(theirs) > 1:
            value, low, high = difference_of_means(theirs, ours[0])
            turned = Estimate(-value, None if high is None else -high, None if low is None else -low)
            return turned, f"{len(theirs)} runs of {ours.shape[1]} episodes"
        pairs = ours[0] - theirs[0]
        low, high = one.possible or (0.0, 0.0)
        ends = (low - high, high - low) if one.possible else ()
        return mean_estimate(pairs, ends), f"{len(pairs)} episodes"


def read_findings(experiment: Pretrained, folder: PretrainedFolder) -> Findings:
    """Read what is there; jobs without a result are listed in :attr:`Findings.missing`."""
    jobs = jobs_of(experiment)
    results = folder.results(jobs)
    there = results.there
    starts = {
        job.name.removeprefix("start/"): there[job.name] for job in jobs if job.kind == "start" and job.name in there
    }
    runs: dict[str, list[Trained]] = {}
    plays: dict[tuple[str, str], list[PretrainedJob]] = {}
    for job in jobs:
        if job.kind == "train" and job.name in there:
            result = there[job.name]
            history = result["history"]
            points = []
            for done, each in result["evaluations"]:
                success, returned = (float(np.mean([one[name] for one in each])) for name in ("success", "mean_return"))
                points.append((done, success, returned))
            own = Trained(
                job.seed,
                np.array([metrics["success"] for metrics in history], dtype=np.float64),
                np.array([metrics.get("entropy", np.nan) for metrics in history], dtype=np.float64),
                points,
                result["training_processor_seconds"],
                sum(result["tokens"].values()),
            )
            runs.setdefault(job.about, []).append(own)
        elif job.kind == "play":
            plays.setdefault((job.about, job.scenario), []).append(job)
    fresh = {}
    for key, group in plays.items():
        if played := [there[job.name] for job in group if job.name in there]:
            returns, successes, unseen, invalid, lengths = (
                np.array([result[name] for result in played], dtype=np.float64)
                for name in ("returns", "successes", "unseen", "invalid", "lengths")
            )
            possible = SCENARIOS[key[1]].game().return_range or ()
            share = float(invalid.sum() / lengths.sum())
            fresh[key] = Fresh(returns, successes, unseen, share, len(group), possible)
    return Findings(
        experiment,
        starts,
        runs,
        fresh,
        tuple(jobs),
        results.missing,
        sum(result["seconds"] for result in there.values()),
        results.code,
    )


def blind_success(experiment: Pretrained, arm: str) -> float | None:
    """Return the success of the best blind player if an arm is trained, as the arm sees it; ``None`` if unknown.

    Blind play is known by its return, which is its success in games that pay 1 for that and nothing else.
    """
    values = []
    for name in experiment.scenarios_of(arm):
        scenario = seen(name, experiment.arms[arm].view)
        blind = blind_play(scenario) if scenario.game().return_range == (0.0, 1.0) else None
        if blind is None:
            return None
        values.append(blind.value)
    return float(np.mean(values))


def blind_return(scenario: str) -> float | None:
    """Return the mean return of the best blind player of a scenario; ``None`` in games for several players."""
    blind = blind_play(SCENARIOS[scenario])
    return None if blind is None else blind.value
