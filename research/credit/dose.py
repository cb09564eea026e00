"""What a study with arms of a known dose of true credit says: learning against dose, and the methods beside the curve.

An arm whose credit is :class:`research.credit.dosed.Dosed` has a dose; other methods have a measured correlation with
the true advantage, at which the curve predicts what they learn.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from agents.common import Array, Estimate, student
from research.credit.findings import Findings, credit_of, figure_on
from research.jobs.intervals import student_tests
from research.jobs.report import table

DOSED = "research.credit.dosed:Dosed"
PREDICTOR = "episode"
"""The kind of noise whose curve the prediction is from: the luck of a return is shared by all steps of an episode."""


class Dose(NamedTuple):
    """The share of the true advantage in an arm's credit, and what the rest is."""

    share: float
    noise: str


def dose_of(settings: Mapping[str, Any]) -> Dose | None:
    """Return the dose of an arm, by its settings; ``None`` for a method as it is."""
    if settings.get("credit") != DOSED:
        return None
    own = settings.get("methods", {}).get("method_settings", {}).get("credit", {}).get(DOSED, {})
    return Dose(own.get("share", 1.0), own.get("noise", "step"))


def curves_of(findings: Findings, game: str) -> dict[str, dict[float, dict[int, float]]]:
    """Return ``{noise: {share: {seed: learning}}}``; a share of 1 or 0 belongs to every kind of noise."""
    doses = {arm: dose for arm, settings in findings.study.arms.items() if (dose := dose_of(settings)) is not None}
    found: dict[str, dict[float, dict[int, float]]] = {}
    for noise in dict.fromkeys(dose.noise for dose in doses.values()):
        for arm, dose in sorted(doses.items(), key=lambda one: one[1].share):
            runs = findings.runs.get((game, arm), ())
            if runs and (dose.noise == noise or dose.share in (0.0, 1.0)):
                found.setdefault(noise, {})[dose.share] = {run.seed: run.learning for run in runs}
    return found


class Standing(NamedTuple):
    """A method as it is, beside what the curve says of its correlation."""

    game: str
    arm: str
    correlation: float  # with the true advantage, the mean over the stages of a plain run
    predicted: float  # learning, by the curve at that correlation
    learning: Estimate
    difference: Estimate  # learning less predicted, paired by seed, over seeds
    p_holm: float


@cache
def curves(findings: Findings) -> dict[str, dict[str, dict[float, dict[int, float]]]]:
    """Return :func:`curves_of` every game that has any."""
    return {game: own for game in findings.study.trained if (own := curves_of(findings, game))}


@cache
def standings(findings: Findings) -> list[Standing]:
    """Return every method that was measured and trained, on every game with a curve."""
    found: dict[tuple[str, str, float], tuple[Array, Array]] = {}  # learning by seed, as predicted and as it was
    for game in findings.study.trained:
        curve = curves_of(findings, game).get(PREDICTOR, {})
        for arm, settings in findings.study.arms.items():
            correlation = figure_on(findings, game, credit_of(settings), "correlation")
            learnt = {run.seed: run.learning for run in findings.runs.get((game, arm), ())}
            seeds = [seed for seed in learnt if all(seed in own for own in curve.values())]
            if dose_of(settings) is not None or correlation is None or len(curve) < 2 or len(seeds) < 2:
                continue
            shares = sorted(curve)
            said = np.array(
                [np.interp(correlation, shares, [curve[share][seed] for share in shares]) for seed in seeds]
            )
            found[game, arm, correlation] = said, np.array([learnt[seed] for seed in seeds])
    tests = student_tests({key: own - said for key, (said, own) in found.items()})
    return [
        Standing(*key, float(said.mean()), student(own), tests[key].mean, tests[key].p_holm)
        for key, (said, own) in found.items()
    ]


def curve_table(findings: Findings) -> str:
    """Return learning at every dose, for each game and kind of noise."""
    found = curves(findings)
    shares = sorted({share for curve in found.values() for own in curve.values() for share in own}, reverse=True)
    rows = [
        [
            *(game, noise),
            *(f"{student(np.array([*own[share].values()])):z.3f}" if share in own else "-" for share in shares),
        ]
        for game, curve in found.items()
        for noise, own in curve.items()
    ]
    return table(["game", "noise", *(f"{share:g}" for share in shares)], rows)


def standings_table(findings: Findings) -> str:
    """Return the table of :func:`standings`."""
    rows = [
        [
            *(row.game, row.arm, f"{row.correlation:.2f}", f"{row.predicted:.3f}", f"{row.learning:z.3f}"),
            *(f"{row.difference:z.3f}", f"{row.p_holm:.2f}"),
        ]
        for row in standings(findings)
    ]
    head = ["game", "method", "correlation", "learning, predicted", "learning", "difference", "p (Holm)"]
    return table(head, rows) if rows else ""
