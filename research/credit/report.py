"""The report of a study of credit: ``Findings -> Markdown, JSON``."""

from collections.abc import Mapping, Sequence
from typing import Any

from agents.common import duration
from research.credit.arms import (
    RATE,
    at_best,
    curve_table,
    curves,
    dose_of,
    effects,
    effects_table,
    standings,
    standings_table,
)
from research.credit.findings import (
    PREDICTORS,
    Cell,
    Findings,
    Made,
    arms_on,
    arms_told_apart,
    over_cells,
    predictions,
    refused_of,
    told_apart,
)
from research.credit.settings import STAGES
from research.credit.tables import (
    arms_table,
    ceilings,
    draws_by_stage,
    draws_table,
    fidelity_table,
    predictions_table,
    recommendation,
    stages_table,
    thinking_table,
    tuning_table,
)
from research.jobs.report import Facts, made_by, said_first, whole_report


def report_data(findings: Findings, facts: Facts, notes: Sequence[str] = ()) -> dict[str, Any]:
    """Return the whole report as plain JSON data; NaN and infinity become ``null``."""
    data = {
        "measured": _by_cell(findings.measured),
        "draws": _by_cell(findings.drawn),
        "thinking": [{"scenario": name, **without_facts(own)} for name, own in findings.thinking.items()],
        "over_cells": {figure: plain(over_cells(findings, figure)) for figure in PREDICTORS},
        "tuning": [
            {"game": game, "arm": arm, "means": {f"{rate:g}": mean for rate, mean in means.items()}}
            for (game, arm), means in findings.tuned.items()
        ],
        "arms": [row for game in findings.study.trained for row in plain(arms_on(findings, game))],
        "runs": [
            {"game": game, "arm": arm, **vars(run), "tokens": run.tokens.tolist(), "returns": run.returns.tolist()}
            for (game, arm), runs in findings.runs.items()
            for run in runs
        ],
        "doses": {
            game: {
                noise: {f"{share:g}": list(learnt.values()) for share, learnt in own.items()}
                for noise, own in curve.items()
            }
            for game, curve in curves(findings).items()
        },
        "standings": plain(standings(findings)),
        "effects": plain(effects(findings)),
        "predictions": plain(predictions(findings)),
        "told_apart": [
            {"figure": figure, "method": method, "p_holm": p} for (figure, method), p in told_apart(findings).items()
        ],
        "arms_told_apart": [
            {"game": game, "arm": arm, "p_holm": p} for (game, arm), p in arms_told_apart(findings).items()
        ],
        "weak": [list(cell) for cell in findings.measured if findings.is_weak(cell)],
        "stages": [
            {"game": game, "run": run, "returns": list(values)} for (game, run), values in findings.stages.items()
        ],
        "refused": refused_of(findings),
    }
    return whole_report(data, findings, sum(findings.seconds.values()), facts, notes, findings.study.as_data())


def _by_cell(documents: Mapping[Cell, Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"game": game, "run": run, "stage": stage, **without_facts(document)}
        for (game, run, stage), document in documents.items()
    ]


def without_facts(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job's result without what it was made with."""
    return {name: value for name, value in document.items() if name != "facts"}


def plain(rows: Any) -> Any:
    """Return named tuples as dictionaries, those inside them, too."""
    if hasattr(rows, "_asdict"):
        return {name: plain(value) for name, value in rows._asdict().items()}
    return [plain(row) for row in rows] if isinstance(rows, list) else rows


def report_markdown(
    findings: Findings, facts: Facts, *, plots: Sequence[tuple[str, str]] = (), notes: Sequence[str] = ()
) -> str:
    """Return the report for people, with ``(file name, caption)`` of the pictures beside it."""
    pictures = pictured(plots)
    study = findings.study
    introduction = _INTRODUCTION.format(
        games=f"{len(study.games)} games ({', '.join(study.games)})",
        **{"stages": ", ".join(STAGES), "runs": study.runs, "plain": study.plain, "arms": len(study.arms)},
        **{"trained": ", ".join(study.trained) or "no game", "seeds": study.seeds},
    )
    introduction = introduction if study.games else "Draw rules, measured. Intervals are 95%."
    caveats = _CAVEATS.format(rates=len(study.rates), games=len(study.games), seeds=study.seeds)
    parts = ["# Which credit is good, and does it pay?", introduction, *said_first(findings, notes, "study")]
    parts += ["## What to use when", recommendation(findings)]
    if findings.drawn or findings.thinking:
        parts += ["## Draws by |advantage|", _STAGES_LEGEND, draws_by_stage(findings), pictures.get("draws.svg", "")]
        parts += [_DRAWS_LEGEND, draws_table(findings)]
        if findings.thinking:
            about = _THINKING_LEGEND.format(agent=findings.study.thinking.agent if findings.study.thinking else "")
            parts += ["### Where there is no exact gradient", about, thinking_table(findings)]
    if over_cells(findings, "correlation"):  # there is a plain method that the others are beside
        parts += ["## Methods under the instrument", _FIDELITY_LEGEND, ceilings(findings), fidelity_table(findings)]
        if refused := [f"- {method}: {reason}" for method, reason in refused_of(findings).items()]:
            parts.append("Not measured:\n\n" + "\n".join(refused))
        parts += [pictures.get("fidelity.svg", ""), stages_table(findings)]
    if curves(findings):
        parts += ["## Learning by the dose of true credit", _DOSE_LEGEND, curve_table(findings)]
        parts += [pictures.get("dose.svg", ""), _STANDING_LEGEND, standings_table(findings)]
    if main := effects(findings):
        parts += ["## What every factor does", _FACTORS_LEGEND, effects_table(main), pictures.get("effects.svg", "")]
        first, *others = findings.study.factors
        for other in others:
            parts += [f"### {first.capitalize()} within {other}", effects_table(effects(findings, first, other))]
        if RATE in others:
            parts += [f"### {first.capitalize()}, each at its best rate", effects_table(at_best(findings, first, RATE))]
    if findings.runs:
        parts += ["## Training at equal tokens", _TRAINING_LEGEND]
        parts += [arms_table(findings), pictures.get("curves.svg", "")]
        if not any(map(dose_of, findings.study.arms.values())):
            parts += ["## Fidelity and learning: this design can't tell", _PREDICTION_LEGEND]
            parts += [predictions_table(findings)]
    if findings.tuned:
        parts += ["## Tuning", tuning_table(findings)]
    parts += ["## What this can't say", caveats, "## How it was done", _method(findings, facts)]
    return "\n\n".join(part for part in parts if part) + "\n"


def pictured(plots: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return ``{file name: the picture with its caption, as Markdown}``."""
    return {name: f"![{caption}]({name})\n\n*{caption}.*" for name, caption in plots}


_INTRODUCTION = (
    "Small models that answer directly, one for each of {games}, are measured at three stages ({stages}) of {runs} "
    "runs of the arm {plain}, the plain one, from bases of their own and with starts of their own: how like the true "
    "advantage each method's credit is, and how like the exact gradient the update is that it makes. Then {arms} "
    "arms are trained on {trained}, {seeds} seeds each, at equal tokens. True advantages and gradients are computed "
    "from the rules (textbench credit), nothing of them is sampled. Intervals are 95%."
)

_DRAWS_LEGEND = (
    "Cosine of the update of M drawn episodes and the exact gradient, method msgrpo; mean over batches and "
    "draws. *No signal*: the share of episodes in groups whose returns are all equal, which uniform draws waste "
    "themselves on. *Tokens*: those of AAW's update, as a share of what all episodes have. The differences are paired "
    "by batch: AAW minus uniform draws among all episodes, and minus uniform draws among those with a signal. "
    "*Unbiased* is the cosine of AAW's unbiased form, *shift* that of the mean update of many AAW draws, less that "
    "of all episodes of the batch. report.json also has the cosine per episode and per response "
    "token of the update, the variance of drawing, and the same against the mean gradient of all other batches."
)

_STAGES_LEGEND = (
    "Cosine with the exact gradient of an update from M episodes drawn by |advantage|, minus that of M drawn "
    "uniformly, averaged over each game's runs. Games, of which there are few, are the clusters: means and Student's "
    "intervals are over them, and one game can carry a mean. That such draws help is claimed only where the p-value, "
    "which is corrected for all rows, says so."
)

_THINKING_LEGEND = (
    "For {agent} the mean gradient of all other batches stands for the exact one, each batch with starts of its own, "
    "as in training."
)

_FIDELITY_LEGEND = (
    "Means over the stages of a run, then over runs, then over games. *Correlation* and *sign* compare the assigned "
    "with the true advantage step by step, *without luck* the advantage that an action gets on average; *cosine* is "
    "that of one batch's gradient and the exact one, *bias* that of the mean gradient, from products of different "
    "batches and not cut off at 1. The difference in brackets is to the plain method's, paired by cell, with Student's "
    "interval over the games and a p-value that is corrected by Holm over all differences of the table but the "
    "controls'. *oracle* is the true advantage itself, which tells the ceiling, *noise* knows nothing. "
    "Methods that need a critic are given the best value that the prompt allows, so this is what they could be. "
    "*Fresh* are response tokens of fresh rollouts for each response token of the batch."
)

_DOSE_LEGEND = (
    "Mean of the exact expected return over the evaluations of a run, by the correlation of its credit with the true "
    "advantage; all else is equal, the size of the credit too. The rest of the credit is drawn for every step, for "
    "every episode, or once for every action. Student's intervals over seeds; all runs of a game begin at one base, so "
    "they say nothing of other bases."
)

_STANDING_LEGEND = (
    "Methods as they are, beside what the curve of noise by episode says at the correlation that the instrument "
    "measures of them (the mean over three stages of a plain run). Differences are paired by seed, *p* is corrected by "
    "Holm over the table."
)

_FACTORS_LEGEND = (
    "All levels are crossed, so each run tells of every factor. A level's figure is its mean over its combinations; "
    "intervals are Student's over the seeds that all combinations have, *p* is corrected by Holm over the "
    "table. Beside learning stand the trained model's expected return at other temperatures (*at 1*) and its mean "
    "return in scenarios that it never learnt."
)

_TRAINING_LEGEND = (
    "Each arm has the same budget of tokens on a game, which its last iteration exceeds: prompts and responses of all "
    "episodes played to learn, fresh rollouts included, and of all rows of the updates. *Learning* is the mean of the "
    "exact expected return over the evaluations of a run (the start left out), so how soon and how well; *minus plain* "
    "is paired by seed. Student's intervals over the seeds; *p* is corrected by Holm over all arms and games."
)

_PREDICTION_LEGEND = (
    "Spearman's correlation, over the arms, between a figure of the arm's method under the instrument (mean over the "
    "stages on that game) and the arm's learning. The intervals resample the seeds of the runs alone. With nine arms "
    "that learn almost alike (hardly any differs from the plain one beyond chance, below) a true relation of ordinary "
    "strength would most often go unseen, and a null here is no finding."
)


_CAVEATS = (
    "Models of 0.08 to 0.2 million parameters that answer directly, on small games: long reasoning, where credit "
    "must also find the token that mattered, isn't here, but for the last part on AAW. Learning rates were tuned "
    "over {rates} values with one run each, so an arm may be some way from its best. The learning rate is constant, "
    "as a budget of tokens doesn't tell the iterations beforehand. Tokens count as if no prefix were shared; an "
    "engine that caches prompts makes rollouts cheaper than that, and passes of a critic or for entropies aren't "
    "counted (the seconds have them). Measurements are of the gradient of one full batch before clipping, with the "
    "optimiser left aside. Means over games depend on which games were chosen, and intervals over {games} games and "
    "over {seeds} seeds are wide."
)


def _method(findings: Findings, facts: Facts) -> str:
    study = findings.study
    told = {f"arm {arm}": settings for arm, settings in study.arms.items() if arm not in study.crossed}
    for factor, levels in study.factors.items():
        told |= {f"{factor} {level}": settings for level, settings in levels.items()}
    lines = [
        f"- {called}: " + ", ".join(f"{name} {value}" for name, value in settings.items())
        for called, settings in told.items()
    ]
    lines += [
        f"- {name} are measured on {size.batches} batches of {size.groups} groups of {size.group_size} episodes, "
        f"at temperature {study.temperature:g}, as in training"
        for name, size in (("methods", study.measurement), ("draw rules", study.draws))
        if size is not None
    ]
    return how_done(findings, facts, study.evaluation_temperature, lines)


def how_done(findings: Made, facts: Facts, evaluated: float, own: Sequence[str] = ()) -> str:
    """Return what a report ends with: by what code, with which settings and from which bases; ``own`` lines amid it."""
    study = findings.study
    shown = ", ".join(f"{name} {value}" for name, value in study.msgrpo.items())
    lines = made_by(findings, facts, "done")
    lines.append(f"- processor time of all jobs together: {duration(sum(findings.seconds.values()))}")
    lines.append(f"- all runs: {shown}; learning rate constant; evaluated at temperature {evaluated:g}")
    lines += own
    for game, known in findings.bases.items():
        loss = known["losses"][-1] if known["losses"] else float("nan")
        about = study.games[game]
        lines.append(
            f"- {game}: base of {known['parameters']:,} parameters from "
            f"{'a noisy demonstrator' if about.start == 'demonstrator' else 'random legal play'} (loss {loss:.3f}), "
            f"horizon {study.scenario(game).horizon}, {about.tokens:,} tokens a run"
            + (f", settings {dict(about.settings)}" if about.settings else "")
        )
    lines.append("- all settings are in report.json and in the recipe")
    return "\n".join(lines)
