"""Findings on the arms of a study: learning by the dose of true credit, and the effects of crossed factors.

An arm whose credit is :class:`research.credit.dosed.Dosed` has a dose; other methods have a measured correlation with
the true advantage, at which the curve predicts what they learn.

Every run of crossed arms (:attr:`Study.factors`) tells of every factor at once. A level's figure is its mean over the
combinations, once for every seed that has all of them; intervals and p-values are over seeds, since the runs of a seed
begin alike. The first level of a factor is the one that its others are compared with.
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


LEARNING = "learning"
RATE = "rate"
"""The factor that is tuned: levels of others are also read at their own best one of it."""


class Effect(NamedTuple):
    """A level of a factor, within some levels of the others."""

    game: str
    figure: str  # LEARNING, or one of Study.ends_of
    factor: str
    level: str
    within: str  # "factor level" of another factor; empty: averaged over all
    seeds: int
    mean: Estimate
    minus_first: Estimate  # paired by seed
    p_holm: float  # over all levels, factors and figures of one table
    is_first: bool  # whether it is what the factor's other levels are beside


@cache
def effects(findings: Findings, factor: str = "", beside: str = "") -> list[Effect]:
    """Return the main effects of all factors, or those of one within every level of another."""
    factors = findings.study.factors
    found: dict[tuple[str, str, str, str, str], tuple[Array, Array]] = {}  # means by seed, and those of the first level
    for game in findings.study.trained:
        for figure in (LEARNING, *findings.study.ends_of(game)):
            known = _known(findings, game, figure)
            for name in [factor] if factor else factors:
                for other in factors.get(beside, [""]):
                    within = {beside: other} if beside else {}
                    levels = {level: _over_cells(findings, known, {**within, name: level}) for level in factors[name]}
                    levels = {level: values for level, values in levels.items() if len(values)}
                    for level, values in levels.items():
                        key = game, figure, name, level, f"{beside} {other}".strip()
                        found[key] = values, next(iter(levels.values()))
    return _tested(found)


def at_best(findings: Findings, factor: str, chosen: str) -> list[Effect]:
    """Return what every level of a factor learns at its own best level of another, a rate; Holm's p is over these rows.

    The best is chosen by the mean over the same seeds, so a close choice flatters, of which no interval knows.
    """
    factors = findings.study.factors
    found: dict[tuple[str, str, str, str, str], tuple[Array, Array]] = {}
    for game in findings.study.trained:
        known, first = _known(findings, game, LEARNING), None
        for level in factors[factor]:
            cells = {one: _over_cells(findings, known, {factor: level, chosen: one}) for one in factors[chosen]}
            cells = {one: values for one, values in cells.items() if len(values)}
            if cells:
                best = max(cells, key=lambda one: cells[one].mean())
                first = cells[best] if first is None else first
                found[game, LEARNING, factor, level, f"{chosen} {best}"] = cells[best], first
    return _tested(found)


def _tested(found: Mapping[tuple[str, str, str, str, str], tuple[Array, Array]]) -> list[Effect]:
    """Return the effects of ``{key: (means by seed, those of the first level)}``."""
    firsts = [key for key, (values, first) in found.items() if values is first]
    tests = student_tests({key: values - first for key, (values, first) in found.items()}, firsts)
    return [
        Effect(*key, len(values), student(values), tests[key].mean, tests[key].p_holm, values is first)
        for key, (values, first) in found.items()
    ]


def _known(findings: Findings, game: str, figure: str) -> dict[str, dict[int, float]]:
    """Return ``{arm: {seed: value}}`` of the seeds that all combinations have."""
    found = {
        arm: {
            run.seed: run.learning if figure == LEARNING else run.ends[figure]
            for run in findings.runs.get((game, arm), ())
            if figure == LEARNING or run.ends.get(figure) is not None
        }
        for arm in findings.study.crossed
    }
    whole = set.intersection(*(set(own) for own in found.values())) if found else set()
    return {arm: {seed: own[seed] for seed in sorted(whole)} for arm, own in found.items()}


def _over_cells(findings: Findings, known: Mapping[str, Mapping[int, float]], levels: Mapping[str, str]) -> Array:
    """Return (seeds,) the mean over the combinations that have these levels; empty if ``--arms`` left none."""
    cells = [
        list(known[arm].values())
        for arm, cell in findings.study.crossed.items()
        if all(cell[factor] == level for factor, level in levels.items())
    ]
    means: Array = np.array(cells, dtype=np.float64).mean(axis=0) if cells else np.empty(0)
    return means


def effects_table(rows: list[Effect]) -> str:
    """Return the effects as a Markdown table."""
    lines = [
        [
            *(row.game, row.figure, f"{row.factor} {row.level}", *([row.within] if row.within else [])),
            *(str(row.seeds), f"{row.mean:z.3f}"),
            *(("-", "-") if row.is_first else (f"{row.minus_first:z.3f}", f"{row.p_holm:.2f}")),
        ]
        for row in rows
    ]
    head = ["game", "figure", "level", *(["within"] if any(row.within for row in rows) else []), "seeds", "mean"]
    return table([*head, "minus the first level", "p (Holm)"], lines) if rows else ""
