"""What a comparison has found so far, read from its folder, and the differences with their corrections.

Seeds are independent: a mean is over them, its interval is Student's, and a difference is taken seed by seed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from agents.common import Array, Estimate, student
from benchmark.score import paired, student_tests
from research.improve.study.jobs import ComparedFolder, jobs_of
from research.improve.study.settings import TRAINER, Comparison

Who = tuple[str, str, int]
"""A game, who plays it (``base``, a method or a player around others), and the budget in tokens, 0 for none."""

ALPHA = 0.05


@dataclass(frozen=True)
class Findings:
    """Everything that was found so far."""

    study: Comparison  # the settings
    results: Mapping[Who, Mapping[int, Mapping[str, Any]]]  # ``{who: {seed: the result of its job}}``
    rates: Mapping[tuple[str, str], Mapping[float, float]]  # ``{(game, method): {rate: regret a decision in tuning}}``
    parameters: int  # of the first base; 0 if there is none
    missing: Sequence[str]  # names of the jobs without a result
    seconds: float  # of the processor, of all jobs
    code: Sequence[str]  # the versions that did the jobs


def read_findings(study: Comparison, folder: ComparedFolder) -> Findings:
    """Read the results of all jobs that are there."""
    jobs = jobs_of(study)
    done = folder.results(jobs)
    there = done.there
    results: dict[Who, dict[int, Any]] = {}
    rates: dict[tuple[str, str], dict[float, float]] = {}
    for job in jobs:
        if job.name not in there:
            continue
        if job.kind in ("play", "learn"):
            results.setdefault((job.game, job.method, job.budget), {})[job.seed] = there[job.name]
        elif job.kind == "tune":
            rates.setdefault((job.game, job.method), {})[job.rate] = there[job.name]["game"]["regret"]
    return Findings(
        study,
        results,
        rates,
        next((there[job.name]["parameters"] for job in jobs if job.kind == "base" and job.name in there), 0),
        done.missing,
        sum(result["processor_seconds"] for result in there.values()),
        done.code,
    )


def over_seeds(findings: Findings, who: Who, figure: str, place: str = "game") -> Estimate:
    """Return the mean of a figure over seeds, in the game or in its twin, with Student's interval."""
    return student(np.array([result[place][figure] for result in findings.results[who].values()]))


def spent(findings: Findings, who: Who) -> float:
    """Return the tokens that were spent to learn, the mean over seeds."""
    return float(np.mean([one.get("played", 0) + one.get("updated", 0) for one in findings.results[who].values()]))


class Difference(NamedTuple):
    """The regret of a player less that of another, in the game or in its twin, seed by seed."""

    who: Who
    than: Who
    place: str  # ``game`` or ``twin``
    seeds: int
    less: Estimate  # in units of the return, a decision; below 0: it loses less
    p_value: float
    p_holm: float  # corrected over all differences of the same place


def differences(findings: Findings) -> list[Difference]:
    """Return all against the base and against MS-GRPO at the same budget, players around others at the largest one.

    The corrections are Holm's over all games, budgets and opponents: one for the games, one for the twins.
    """
    found: list[Difference] = []
    for place in findings.study.places:
        regrets = {
            who: {seed: result[place]["regret"] for seed, result in results.items()}
            for who, results in findings.results.items()
        }
        less: dict[tuple[Who, Who, str], Array] = {}
        for game, name, budget in regrets:
            others: list[Who] = [(game, "base", 0), (game, TRAINER, budget or findings.study.budgets[-1])]
            for than in [] if name == "base" else others[: 1 if name == TRAINER else 2]:
                own = paired(regrets[game, name, budget], regrets.get(than, {}))
                if len(own):
                    less[(game, name, budget), than, place] = own
        found += [Difference(*key, len(less[key]), *test) for key, test in student_tests(less).items()]
    return found
