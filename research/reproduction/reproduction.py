"""What a reproduction has found so far, read from its folder: plain arrays that claims, plots and reports work on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agents.common import Array
from research.reproduction.jobs import ReproductionFolder, jobs_of
from research.reproduction.settings import Experiment


@dataclass(frozen=True)
class Played:
    """The fresh episodes of one agent in one scenario; arrays of shape (episodes,), in the order of their seeds."""

    returns: Array
    successes: Array
    lengths: Array
    invalid: Array

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[float]]) -> "Played":
        names = ("returns", "successes", "lengths", "invalid")
        return cls(*(np.array(columns[name], dtype=np.float64) for name in names))


@dataclass(frozen=True)
class Run:
    """One training run of the reproduction."""

    game: str  # the scenario that it was trained on
    arm: str  # the name of its settings, a key of the experiment's ``arms``
    seed: int  # of the training
    iterations: Array  # shape (evaluations,), how many iterations were done at each evaluation
    curves: Mapping[str, Array]  # ``{scenario: shape (evaluations,)}``, the mean return on the fixed episodes
    final: Mapping[str, Played]  # ``{scenario: the fresh episodes that were played with its last weights}``
    seconds: float = 0.0  # how long the training took, without evaluations
    tokens: int | None = None  # read and written in rollouts and updates; None: not counted yet when it ran


@dataclass(frozen=True)
class Reproduction:
    """Everything that was found so far."""

    runs: tuple[Run, ...] = ()  # that are done; those whose fresh episodes aren't played yet have an empty ``final``
    # ``{base or reference agent: {scenario: fresh episodes}}``
    agents: Mapping[str, Mapping[str, Played]] = field(default_factory=dict)
    parameters: Mapping[str, int] = field(default_factory=dict)  # ``{base: number of parameters}``
    controls: tuple[Mapping[str, Any], ...] = ()  # records, each with the ``agent`` that was tested
    missing: tuple[str, ...] = ()  # names of the jobs without a result
    seconds: Mapping[str, float] = field(default_factory=dict)  # ``{job: how long it took}`` of those that are done
    bases: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # ``{base: {recipe, losses, seconds, ...}}``
    code: tuple[str, ...] = ()  # the versions that made bases and runs, in the order of their first use

    def runs_of(self, game: str, arm: str) -> list[Run]:
        """Return the runs of one arm on one game, by seed."""
        return sorted((run for run in self.runs if (run.game, run.arm) == (game, arm)), key=lambda run: run.seed)

    def final_returns(self, game: str, arm: str, scenario: str) -> Array:
        """Shape (runs, episodes): returns of the fresh episodes of a scenario, by the runs of one arm on one game."""
        return np.array([run.final[scenario].returns for run in self.runs_of(game, arm) if scenario in run.final])

    def curve(self, game: str, arm: str, scenario: str) -> tuple[Array, Array]:
        """Iterations, shape (evaluations,), and mean returns on the fixed episodes, shape (runs, evaluations)."""
        runs = self.runs_of(game, arm)
        if not runs:
            return np.empty(0), np.empty((0, 0))
        return runs[0].iterations, np.array([run.curves[scenario] for run in runs])


def read_reproduction(experiment: Experiment, folder: ReproductionFolder) -> Reproduction:
    """Read what is there; jobs without a result are listed in :attr:`Reproduction.missing`."""
    jobs = jobs_of(experiment)
    there = {job.name: folder.result(job.name) for job in jobs if folder.is_done(job.name)}
    runs = []
    for job in jobs:
        if job.kind == "train" and job.name in there:
            result, final = there[job.name], there.get(f"play/{job.name}", {}).get("scenarios", {})
            done = np.array([done for done, _ in result["evaluations"]], dtype=np.float64)
            curves: dict[str, list[float]] = {}
            for _, evaluated in result["evaluations"]:
                for one in evaluated:
                    curves.setdefault(one["scenario"], []).append(one["mean_return"])
            told = {name: np.array(curve) for name, curve in curves.items()}
            last = {name: Played.of(columns) for name, columns in final.items()}
            tokens = sum(result["tokens"].values()) if "tokens" in result else None
            runs.append(Run(job.game, job.arm, job.seed, done, told, last, result["training_seconds"], tokens))
    names = [*experiment.bases, *experiment.reference_agents]
    agents = {
        name: {scenario: Played.of(columns) for scenario, columns in there[f"play/{name}"]["scenarios"].items()}
        for name in names
        if f"play/{name}" in there
    }
    controls = [
        {"agent": job.agent, **result}
        for job in jobs
        if job.kind == "control" and job.name in there
        for result in there[job.name]["controls"]
    ]
    made = [job.name for job in jobs if job.kind in ("pretrain", "train")]
    bases = {name: there[f"pretrain/{name}"] for name in experiment.bases if f"pretrain/{name}" in there}
    return Reproduction(
        runs=tuple(runs),
        agents=agents,
        parameters={name: result["parameters"] for name, result in bases.items()},
        controls=tuple(controls),
        missing=tuple(job.name for job in jobs if job.name not in there),
        seconds={name: result["seconds"] for name, result in there.items()},
        bases=bases,
        code=tuple(dict.fromkeys(there[name]["facts"]["textbench"] for name in made if name in there)),
    )
