"""What a study has found so far: figures that are computed anew from the results in its folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from agents.common import RESAMPLES, Array, Estimate, percentiles, student
from benchmark.score import holm
from research.credit.settings import OnGames, Study, StudyFolder, jobs_of
from research.jobs.folder import Results
from research.jobs.intervals import paired, student_p_value

Cell = tuple[str, int, str]
"""A game, a run of it, and a stage of that run."""

CONTROLS = ("oracle", "noise")  # measured with the methods, so that one sees what is possible and what is nothing

PREDICTORS = ("correlation", "sign_agreement", "mean_correlation", "gradient_cosine", "bias")
"""The instrument's figures that are asked whether they predict learning."""

_SEED = 20261121


@dataclass(frozen=True)
class Run:
    """What one training run spent and reached, up to its budget of tokens."""

    seed: int
    rate: float
    tokens: Array  # (points,) spent until each evaluation
    returns: Array  # (points,) the exact expected return there
    iterations: int
    rollout_tokens: int
    update_tokens: int
    seconds: float  # of the processor, without evaluations
    ends: Mapping[str, float] = field(default_factory=dict)  # ``{one of Study.ends_of: what the trained model gets}``

    @property
    def learning(self) -> float:
        """How soon and how well it learnt: the mean over its evaluations but the one at the start."""
        return float(self.returns[1:].mean())

    @property
    def last(self) -> float:
        return float(self.returns[-1])


@dataclass(frozen=True, eq=False)  # equal to itself alone, so that what is computed of it can be kept
class Made:
    """What is known of the jobs of any experiment on games."""

    study: OnGames  # the settings
    bases: Mapping[str, Mapping[str, Any]]  # ``{game: what making the base of its first run gave}``
    missing: Sequence[str]  # names of the jobs without a result
    seconds: Mapping[str, float]  # ``{job: how long it took}``, of the processor
    code: Sequence[str]  # the versions that did the jobs


@dataclass(frozen=True, eq=False)
class Findings(Made):
    """Everything that was found so far."""

    study: Study
    # ``{(game, run): (returns at the three stages, or nothing in games of several players)}``
    stages: dict[tuple[str, int], Sequence[float]]
    measured: dict[Cell, Any]  # ``{(game, run, stage): the document of textbench credit --json}``
    drawn: dict[Cell, Any]  # ``{(game, run, stage): what was measured of draw rules}``
    thinking: dict[str, Any]  # ``{scenario: the same for the model that reasons}``
    tuned: dict[tuple[str, str], dict[float, float]]  # ``{(game, arm): {rate: mean over the evaluations}}``
    runs: dict[tuple[str, str], list[Run]]  # ``{(game, arm): the runs by seed}``

    def is_weak(self, cell: Cell) -> bool:
        """Return whether even the oracle's gradient was mostly noise there, so that the cell is in no mean."""
        return bool(self.measured.get(cell, {}).get("weak"))


def read_findings(study: Study, folder: StudyFolder) -> Findings:
    """Read the results of all jobs that are there."""
    jobs = jobs_of(study)
    results = folder.results(jobs)
    found = Findings(**made_of(study, jobs, results), stages={}, measured={}, drawn={}, thinking={}, tuned={}, runs={})
    for job, result in [(job, results.there[job.name]) for job in jobs if job.name in results.there]:
        cell, arm = (job.game, job.run, job.stage), (job.game, job.arm)
        match job.kind:
            case "stages":
                values = [value for _, _, value in result["points"] if np.isfinite(value)]
                found.stages[job.game, job.run] = values
            case "measure":
                found.measured[cell] = result
            case "draws":
                found.drawn[cell] = result
            case "think":
                found.thinking[job.game] = result
            case "tune":
                mean = float(np.mean([value for _, _, value in result["points"][1:]]))
                found.tuned.setdefault(arm, {})[job.rate] = mean
            case "train":
                points = np.array(result["points"], dtype=np.float64)
                run = Run(
                    seed=job.seed,
                    rate=result["rate"],
                    tokens=points[:, 0],
                    returns=points[:, 2],
                    iterations=len(result["history"]),
                    rollout_tokens=result["rollout_tokens"],
                    update_tokens=result["update_tokens"],
                    seconds=result["training_seconds"],
                    ends=result.get("ends", {}),
                )
                found.runs.setdefault(arm, []).append(run)
    return found


def made_of(study: OnGames, jobs: Sequence[Any], results: Results) -> dict[str, Any]:
    """Return the fields of :class:`Made`."""
    bases = [job for job in jobs if job.kind == "base" and job.name in results.there]
    return {
        "study": study,
        "bases": {job.game: results.there[job.name] for job in reversed(bases)},
        "missing": results.missing,
        "seconds": {name: result["processor_seconds"] for name, result in results.there.items()},
        "code": results.code,
    }


def value_of(document: Mapping[str, Any], method: str, figure: str) -> float | None:
    """Return a figure of a method in a measurement; ``None`` if there is none."""
    own: Mapping[str, Any] = next((each for each in document["methods"] if each["name"] == method), {})
    found = (own.get(figure) or {}).get("value")
    return None if found is None else float(found)


def by_game(values: Mapping[Cell, float]) -> dict[str, float]:
    """Return the mean over the stages of each run, and then over the runs of each game: games are independent."""
    runs: dict[str, dict[int, list[float]]] = {}
    for (game, run, _), value in values.items():
        runs.setdefault(game, {}).setdefault(run, []).append(value)
    return {game: float(np.mean([np.mean(stages) for stages in of_run.values()])) for game, of_run in runs.items()}


class Comparison(NamedTuple):
    """A method over all cells in which both it and the plain one were measured, weak ones left out."""

    method: str
    cells: int
    mean: float  # over stages, then runs, then games
    minus_plain: Estimate  # of the same means, with Student's interval over the games
    p_value: float  # that the mean of those differences is zero, by Student's test over the games; not corrected


@cache
def over_cells(findings: Findings, figure: str) -> list[Comparison]:
    """Return a figure of every method, averaged over games, the best one first."""
    plain = _plain_method(findings)
    rows = []
    for method in methods_of(findings):
        pairs: dict[Cell, tuple[float, float]] = {}
        for cell, document in findings.measured.items():
            own, other = value_of(document, method, figure), value_of(document, plain, figure)
            if own is not None and other is not None and not findings.is_weak(cell):
                pairs[cell] = own, other
        if pairs:
            mean = float(np.mean([*by_game({cell: own for cell, (own, _) in pairs.items()}).values()]))
            less = np.array([*by_game({cell: own - other for cell, (own, other) in pairs.items()}).values()])
            rows.append(Comparison(method, len(pairs), mean, student(less), student_p_value(less)))
    return sorted(rows, key=lambda row: -row.mean)


RANKED = ("correlation", "gradient_cosine")
"""The figures in which the report's table sets methods beside the plain one."""


@cache
def told_apart(findings: Findings) -> dict[tuple[str, str], float]:
    """Return ``{(figure, method): p}``, corrected by Holm over all methods and both figures that the table compares.

    The controls aren't among them.
    """
    unranked = (*CONTROLS, _plain_method(findings))
    rows = [(figure, row) for figure in RANKED for row in over_cells(findings, figure)]
    return holm({(figure, row.method): row.p_value for figure, row in rows if row.method not in unranked})


def methods_of(findings: Findings) -> list[str]:
    """Return the methods that were measured anywhere, controls included, in the order in which they first appear."""
    return list(dict.fromkeys(each["name"] for found in findings.measured.values() for each in found["methods"]))


def refused_of(findings: Findings) -> dict[str, str]:
    """Return ``{method: why it wasn't measured, and on which games}``."""
    found: dict[str, dict[str, list[str]]] = {}
    for (game, _, _), document in findings.measured.items():
        for method, reason in document["skipped"].items():
            games = found.setdefault(method, {}).setdefault(reason, [])
            games += [] if game in games else [game]
    return {
        method: "; ".join(f"{reason} ({', '.join(games)})" for reason, games in reasons.items())
        for method, reasons in found.items()
    }


def credit_of(arm: Mapping[str, Any]) -> str:
    """Return the method of credit of an arm, by its settings."""
    return str(arm.get("credit", "msgrpo"))


def _plain_method(findings: Findings) -> str:
    return credit_of(findings.study.arms.get(findings.study.plain, {}))


class ArmResult(NamedTuple):
    """An arm on one game."""

    game: str
    arm: str
    runs: int
    rate: float
    learning: Estimate  # Run.learning, over seeds
    last: Estimate  # Run.last, over seeds
    minus_plain: Estimate  # learning less that of the plain arm with the same seed
    p_value: float  # that the mean of those differences is zero; not corrected
    iterations: float  # means over the runs, here and below
    tokens: float
    rollout_share: float
    seconds: float


@cache
def arms_on(findings: Findings, game: str) -> list[ArmResult]:
    """Return every arm with runs on a game, the one that learnt most first."""
    plain = {run.seed: run.learning for run in findings.runs.get((game, findings.study.plain), ())}
    rows = []
    for arm in findings.study.arms:
        runs = findings.runs.get((game, arm), ())
        if not runs:
            continue
        pairs = paired({run.seed: run.learning for run in runs}, plain)
        tokens = np.array([run.rollout_tokens + run.update_tokens for run in runs], dtype=np.float64)
        rows.append(
            ArmResult(
                *(game, arm, len(runs), runs[0].rate),
                learning=student(np.array([run.learning for run in runs])),
                last=student(np.array([run.last for run in runs])),
                minus_plain=student(pairs),
                p_value=student_p_value(pairs),
                iterations=float(np.mean([run.iterations for run in runs])),
                tokens=float(tokens.mean()),
                rollout_share=float(np.mean([run.rollout_tokens for run in runs] / tokens)),
                seconds=float(np.mean([run.seconds for run in runs])),
            )
        )
    return sorted(rows, key=lambda row: -row.learning.value)


@cache
def arms_told_apart(findings: Findings) -> dict[tuple[str, str], float]:
    """Return ``{(game, arm): p}`` that an arm learns as the plain one does, corrected by Holm over all of them."""
    rows = [row for game in findings.study.trained for row in arms_on(findings, game)]
    return holm({(row.game, row.arm): row.p_value for row in rows if row.arm != findings.study.plain})


def figure_on(findings: Findings, game: str, method: str, figure: str) -> float | None:
    """Return a method's mean figure over a game's runs and stages; ``None`` if it wasn't measured."""
    known = {
        cell: value
        for cell, document in findings.measured.items()
        if cell[0] == game and not findings.is_weak(cell)
        if (value := value_of(document, method, figure)) is not None
    }
    return by_game(known).get(game)


class Prediction(NamedTuple):
    """How well a figure of the instrument predicts which arm learns more on a game."""

    figure: str
    game: str
    arms: int
    spearman: Estimate  # the interval is over the seeds of the runs alone


@cache
def predictions(findings: Findings) -> list[Prediction]:
    """Return Spearman's correlation of a method's figure on a game with its arm's learning, for every figure and game.

    The intervals resample the seeds of every arm; they say how far the order of the arms is luck of the runs.
    """
    rows = []
    for figure in PREDICTORS:
        for game in findings.study.trained:
            pairs = []
            for arm, settings in findings.study.arms.items():
                value = figure_on(findings, game, credit_of(settings), figure)
                learning = [run.learning for run in findings.runs.get((game, arm), ())]
                if value is not None and learning:
                    pairs.append((value, np.array(learning)))
            if len(pairs) >= 3:
                figures = np.array([value for value, _ in pairs])
                rng = np.random.default_rng([_SEED, len(pairs)])
                drawn = np.stack([rng.choice(own, (RESAMPLES, len(own))).mean(axis=1) for _, own in pairs], axis=1)
                told = float(rank_correlation(figures, np.array([own.mean() for _, own in pairs])))
                spearman = Estimate(told, *percentiles(rank_correlation(figures, drawn)))
                rows.append(Prediction(figure, game, len(pairs), spearman))
    return rows


def rank_correlation(x: Array, y: Array) -> Array:
    """Return Spearman's correlation of (n,) with (..., n), equal values sharing their mean rank; NaN without
    variation."""
    from scipy.stats import rankdata

    ranks_x, ranks_y = rankdata(x) - (len(x) + 1) / 2, rankdata(y, axis=-1) - (len(x) + 1) / 2
    with np.errstate(invalid="ignore"):
        found: Array = ranks_y @ ranks_x / np.sqrt((ranks_x**2).sum() * (ranks_y**2).sum(axis=-1))
    return found


def draw_of(document: Mapping[str, Any], rule: str, m: int, reference: str) -> Any:
    """Return one rule at one number of draws of MS-GRPO's episodes; ``None`` if it wasn't measured."""
    draws = [draw for each in document["methods"] if each["name"] == "msgrpo" for draw in each["draws"]]
    wanted = (rule, m, reference)
    return next((draw for draw in draws if (draw["rule"], draw["m"], draw["reference"]) == wanted), None)
