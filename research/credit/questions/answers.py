"""What came of the questions: figures over runs, with corrected p-values.

A run of a game is a cluster: its figures are means over batches and stages, and intervals are over runs. Differences
are taken stage by stage, as not every stage has every figure.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from agents.common import Array, Estimate, student
from research.credit.findings import Made, made_of
from research.credit.questions.settings import Questions, jobs_of
from research.credit.settings import StudyFolder
from research.jobs.intervals import share_of, student_tests


@dataclass(frozen=True)
class Asked(Made):
    """Everything that was found so far; ``asked`` is ``{job: what it found}``."""

    study: Questions
    asked: Mapping[str, Mapping[str, Any]]


def read_findings(questions: Questions, folder: StudyFolder) -> Asked:
    """Read the results of all jobs that are there."""
    jobs = jobs_of(questions)
    results = folder.results(jobs)
    asked = {job.name: results.there[job.name] for job in jobs if job.kind == "ask" and job.name in results.there}
    return Asked(**made_of(questions, jobs, results), asked=asked)


def findings_of(report: Mapping[str, Any]) -> Asked:
    """Return the findings that a report was made of, the bases' losses and the times of single jobs aside."""
    questions = Questions.model_validate(report["settings"])
    seconds, asked = {"all": report["seconds"]}, {row["job"]: row for row in report["asked"]}
    return Asked(questions, {}, report["missing"], seconds, report["code"], asked)


COLLAPSED = 0.1
"""The entropy of a policy's valid actions, as a share of the largest, below which it has collapsed."""

What = tuple[Any, ...]
ByStage = dict[What, dict[tuple[str, ...], list[float]]]
"""``{what: {(game, run, stage): a figure of each of its rows}}``."""


class Answer(NamedTuple):
    """A figure over runs, and what it is less that of its comparison."""

    what: What
    value: Estimate
    difference: Estimate
    p_value: float
    p_holm: float  # over the tests of the question; 1 if it is compared with itself


def answers(figures: ByStage, comparison: Callable[[What], What]) -> list[Answer]:
    """Return every figure beside its comparison, paired by stage and averaged by run, with Holm's correction over
    all."""
    means = {what: {stage: float(np.mean(rows)) for stage, rows in own.items()} for what, own in figures.items()}
    less = {}
    for what, own in means.items():
        other = means.get(comparison(what), {})
        less[what] = _by_run({stage: [value - other[stage]] for stage, value in own.items() if stage in other})
    tests = student_tests(less, [what for what in figures if comparison(what) == what])
    return [Answer(what, student(_by_run(own)), *tests[what]) for what, own in figures.items()]


def figures_of(findings: Asked, question: str, keys: Sequence[str], figure: Callable[[Any], Any]) -> ByStage:
    """Return a figure of the rows that a question has of the plain runs, by the keys that tell them apart."""
    found: ByStage = {}
    for name, result in findings.asked.items():
        for number, stage in enumerate(result.get("stages", ())):
            for row in stage.get(question, ()):
                if (value := figure(row)) is not None:
                    by_stage = found.setdefault(tuple([row[key] for key in keys]), {})
                    by_stage.setdefault((*name.split("/")[1:3], str(number)), []).append(value)
    return found


def _by_run(by_stage: Mapping[tuple[str, ...], Sequence[float]]) -> Array:
    """Return (runs,) the means over the rows of every run's stages."""
    runs: dict[tuple[str, ...], list[float]] = {}
    for (game, run, _), rows in by_stage.items():
        runs.setdefault((game, run), []).extend(rows)
    return np.array([np.mean(own) for own in runs.values()])


STALENESS, GROUPS = ("lag", "weights"), ("method", "size")
"""What tells the rows of a question apart."""


def staleness(findings: Asked, figure: str = "cosine") -> list[Answer]:
    """Return ``(lag, weights)``: without weights beside lag 0, with weights beside none at that lag."""
    found = figures_of(findings, "staleness", STALENESS, lambda row: row[figure]["value"])
    found = {what: own for what, own in found.items() if what[0] or what[1] == "none"}
    return answers(found, lambda what: (0 if what[1] == "none" else what[0], "none"))


def group_sizes(findings: Asked, figure: str = "cosine") -> list[Answer]:
    """Return ``(method, size)`` beside groups of 8, or of the smallest size without any of 8."""
    found = figures_of(findings, "groups", GROUPS, lambda row: row[figure]["value"])
    sizes = {size for _, size in found}
    usual = 8 if 8 in sizes else min(sizes, default=0)
    return answers(found, lambda what: (what[0], usual))


def plain_figure(findings: Asked, question: str, key: str, figure: str) -> dict[Any, Estimate]:
    """Return ``{value of the key: a figure that is a number}``, over runs."""
    found = figures_of(findings, question, [key], lambda row: row[figure])
    return {what: student(_by_run(own)) for (what,), own in found.items()}


class Split(NamedTuple):
    """The exact gradient's parts at one place of one run, and where its policy stands."""

    game: str
    run: int
    place: str  # a stage of the plain run, or the steps of imitation
    valid: float
    share: float  # |penalty| / (|penalty| + |reward|), at a penalty of 1
    cosine: float


def splits(findings: Asked) -> list[Split]:
    """Return every place at which the exact gradient was split."""
    rows = []
    for name, result in findings.asked.items():
        _, game, run, place = name.split("/")
        for each in result.get("stages", [result]):
            if (parts := each.get("parts")) is not None:
                share = parts["penalty"] / max(parts["penalty"] + parts["reward"], 1e-300)
                where = (each.get("stage", place), each["standing"]["valid"])
                rows.append(Split(game, int(run), *where, share, parts["cosine"]))
    return rows


class Short(NamedTuple):
    """A short run under a format penalty, from a base of so many steps of imitation."""

    game: str
    run: str
    steps: int
    penalty: float
    collapsed: bool  # before its first success
    points: Sequence[Mapping[str, float]]  # iterations, and where the policy stood
    success: Sequence[float]  # of the episodes of every iteration


def shorts(findings: Asked) -> list[Short]:
    """Return all short runs."""
    rows = []
    for name, result in findings.asked.items():
        _, game, run, place = name.split("/")
        for each in result.get("runs", ()):
            points, success = each["points"], each["success"]
            collapsed = any(
                point["entropy"] < COLLAPSED and not any(success[: int(point["iterations"])]) for point in points
            )
            rows.append(Short(game, run, int(place), each["penalty"], collapsed, points, success))
    return rows


def penalties(findings: Asked) -> list[Answer]:
    """Return ``(penalty,)``: the expected return at the end beside that with a penalty of 1, over all levels of
    imitation."""
    found: ByStage = {}
    for each in shorts(findings):
        level = (each.game, each.run, str(each.steps))
        found.setdefault((each.penalty,), {}).setdefault(level, []).append(each.points[-1]["returns"])
    return answers(found, lambda what: (1.0,))


def collapses(findings: Asked) -> dict[float, Estimate]:
    """Return ``{penalty: the share of runs that collapsed before their first success}``, with Wilson's interval."""
    found: dict[float, list[float]] = {}
    for each in shorts(findings):
        found.setdefault(each.penalty, []).append(float(each.collapsed))
    return {penalty: share_of(own) for penalty, own in found.items()}
