"""How long an experiment takes: typical seconds of each job, corrected by what this run's own jobs took so far.

A job's work is counted in decisions and the text that is read for them; a table says what that typically costs. What
the jobs of this run cost, finished or not, is blended with the table, and counts the more the more there is of it. So
nothing is measured beforehand, and no single job makes the estimate jump.
"""

import os
import time
from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Any, NamedTuple

import numpy as np

from research.reproduce.jobs import AnyJob, Folder, Job
from research.reproduce.settings import Experiment, recipe_of
from textgames.scenarios import SCENARIOS


class Cost(NamedTuple):
    """Seconds of one core per thousand characters of text (rules and observation) that a decision is taken on."""

    fixed: float
    per_million_parameters: float


# From the committed reproduction and the recipe quick, on two machines whose paces differ by half.
DEMONSTRATE_SECONDS = 1e-3  # demonstrating a decision, per thousand characters
IMITATE = Cost(2e-3, 4e-3)  # learning once from a demonstrated decision
SAMPLE = Cost(1.7e-3, 4e-3)  # playing a decision, in a batch
LEARN = Cost(0.6e-3, 1e-3)  # a decision in an update of MS-GRPO
START_SECONDS = 2.0  # for every job: loading a model, and libraries in the first job of a process

_DECISIONS = 0.7  # of an episode, as a share of its horizon
_PRIOR_SECONDS = 60.0  # of work for which the table counts as much as what was measured


class Timetable:
    """Says how long what is left will take.

    Args:
        typical: ``{job: what it takes where the table was made}``, or the reproduction that the jobs belong to.
        folder: where the results are; those that are there have the seconds that they took.
        jobs: all jobs, done or not.
        processes: jobs at a time.
    """

    def __init__(
        self, typical: Mapping[str, float] | Experiment, folder: Folder, jobs: Sequence[Any], processes: int
    ) -> None:
        self.jobs: dict[str, AnyJob] = {job.name: job for job in jobs}
        self.processes = processes
        if isinstance(typical, Experiment):
            typical = {job.name: _typical_seconds(job, typical) for job in jobs}
        self.typical = dict(typical)
        self.left: list[AnyJob] = [job for job in jobs if not folder.is_done(job.name)]
        self._shares = dict.fromkeys(self.jobs, 1.0) | {job.name: 0.0 for job in self.left}
        self._order = tuple(TopologicalSorter({job.name: job.needs for job in jobs}).static_order())
        self._folder = folder
        # What was measured: {job: (typical seconds of the part of it that was watched, seconds that this part took)}.
        self._measured: dict[str, tuple[float, float]] = {}
        for job in jobs:
            if job not in self.left:
                self.done(job.name)
        self._watched: dict[str, tuple[float, float]] = {}  # {job: (share, time) when it was first seen to move}

    def progress(self, shares: Mapping[str, float]) -> None:
        """Take note of how far the running jobs are: ``{job: share}``."""
        now = time.monotonic()
        for name, share in shares.items():
            self._shares[name] = share
            if share > 0:  # not from the start of a job: it may go on from a checkpoint
                began, since = self._watched.setdefault(name, (share, now))
                self._measured[name] = ((share - began) * self.typical[name], now - since)

    def done(self, name: str) -> float:
        """Take note of a job's end; returns the seconds that it took."""
        seconds = float(self._folder.result(name)["seconds"])
        self.left = [job for job in self.left if job.name != name]
        self._shares[name], self._measured[name] = 1.0, (self.typical[name], seconds)
        return seconds

    def done_share(self) -> float:
        """How much of the whole work is done, in [0, 1]."""
        done = sum(self.typical[name] * share for name, share in self._shares.items())
        return done / sum(self.typical.values())

    def seconds_left(self) -> float:
        """Until the last job is done, if none waits for a process longer than the work or its own needs make it."""
        pace = self._pace()
        left = {name: (1 - self._shares[name]) * self.typical[name] * pace[job.kind] for name, job in self.jobs.items()}
        ends: dict[str, float] = {}  # when each job can be done at the earliest
        for name in self._order:
            ends[name] = left[name] + max((ends[need] for need in self.jobs[name].needs), default=0.0)
        return max(sum(left.values()) / self.processes, max(ends.values()))

    def _pace(self) -> dict[str, float]:
        """``{kind: seconds that a typical second takes here}``; a kind that wasn't seen yet goes at the pace of all."""
        overall = _blend(1.0, list(self._measured.values()))
        return {
            kind: _blend(overall, [pair for name, pair in self._measured.items() if self.jobs[name].kind == kind])
            for kind in {job.kind for job in self.jobs.values()}
        }


def _blend(prior: float, measured: Sequence[tuple[float, float]]) -> float:
    typical, took = sum(pair[0] for pair in measured), sum(pair[1] for pair in measured)
    return (prior * _PRIOR_SECONDS + took) / (_PRIOR_SECONDS + typical)


def _typical_seconds(job: Job, experiment: Experiment) -> float:
    """What a job takes where the table was made."""
    if job.agent in experiment.reference_agents:
        return START_SECONDS
    base = job.agent if job.agent in experiment.bases else "small"
    sample = _seconds(SAMPLE, base, experiment)
    episode = {
        name: sample * _DECISIONS * SCENARIOS[name].horizon * _kilocharacters(name) for name in experiment.scenarios
    }
    if job.kind == "pretrain":
        seconds = _pretraining_seconds(base, experiment)
    elif job.kind == "train":
        from agents.msgrpo import MSGRPOConfig

        config = MSGRPOConfig.from_mapping(experiment.training_settings(job.game, job.arm, job.seed))
        drawn = config.episodes if config.episode_sampling == "off" else config.draws
        # how many played episodes cost as much as the update
        learnt = drawn * config.update_passes * _seconds(LEARN, base, experiment) / sample
        evaluations = 1 + config.iterations // config.eval_every
        seconds = config.iterations * (config.episodes + learnt) * episode[job.game]
        seconds += evaluations * config.eval_episodes * sum(episode.values())
    elif job.kind == "play":
        seconds = experiment.final_episodes * sum(episode.values())
    else:
        games = (job.game,) if job.game else experiment.games
        seconds = 4 * experiment.control_episodes * sum(episode[game] for game in games)
    return START_SECONDS + seconds


def _pretraining_seconds(base: str, experiment: Experiment) -> float:
    from agents.tiny.data import scenarios_of

    if experiment.bases[base].source:
        return 0.0
    recipe = recipe_of(experiment.pretraining_settings(base))
    kilocharacters = sum(share * _kilocharacters(name) for name, share in scenarios_of(recipe.games).items())
    learnt = recipe.steps * recipe.batch_size * _seconds(IMITATE, base, experiment)
    return float(kilocharacters * (recipe.examples * DEMONSTRATE_SECONDS + learnt))


def _seconds(cost: Cost, base: str, experiment: Experiment) -> float:
    """Seconds per thousand characters for a model of a base's shape."""
    if experiment.bases[base].source:
        return cost.fixed + 0.2 * cost.per_million_parameters  # as many millions as the embedded models have
    recipe = recipe_of(experiment.pretraining_settings(base))
    attention = 2 * recipe.hidden_size**2 * (1 + recipe.kv_heads / recipe.heads)
    matrices = recipe.layers * (attention + 3 * recipe.hidden_size * recipe.intermediate_size)
    return float(cost.fixed + cost.per_million_parameters * matrices / 1e6)


def _kilocharacters(scenario: str) -> float:
    """How much text a decision of this scenario is taken on: the rules and its first observation."""
    game = SCENARIOS[scenario].game()
    player = game.players[0]
    state = game.initial_state(np.random.default_rng(0))
    return (len(game.instructions(player)) + len(game.observe(state, player))) / 1000


def default_processes() -> int:
    """As many as there are cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
