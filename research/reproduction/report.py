"""The report of a reproduction: the claims with their figures and verdicts, then everything they rest on.

``Reproduction -> Findings -> Markdown, JSON``. Figures are rounded for people in the Markdown and whole in the JSON.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from math import isfinite
from typing import Any

import numpy as np

from agents.common import duration
from benchmark.show import number
from research.jobs.intervals import mean_over_runs
from research.jobs.report import Facts, made_by, said_first, table, whole_report
from research.reproduction.claims import Claim, beside, judge
from research.reproduction.reproduction import Played, Reproduction
from research.reproduction.settings import Experiment

_LAST_LOSSES = 5  # losses are means over 1% of the steps


def report_data(
    results: Reproduction, experiment: Experiment, facts: Facts, notes: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the whole report as plain JSON data; NaN and infinity become ``null``."""

    def told(played: Played) -> dict[str, Any]:
        found = _estimates([played])
        estimates = {name: found[name]._asdict() for name in ("returned", "success")}
        return {**found, **estimates, "episodes": len(played.returns)}

    data = {
        "claims": [
            claim._asdict()
            | {"findings": [one._asdict() | {"estimate": one.estimate._asdict()} for one in claim.findings]}
            for claim in claims_of(results, experiment)
        ],
        "agents": [
            {"agent": name, "scenario": scenario, **told(played)}
            for name, scenarios in results.agents.items()
            for scenario, played in scenarios.items()
        ],
        "runs": [
            {
                **{"game": run.game, "arm": run.arm, "seed": run.seed, "training_seconds": run.seconds},
                "tokens": run.tokens,
                "final": {name: told(played) for name, played in run.final.items()},
            }
            for run in results.runs
        ],
        "differences": [
            {"game": game, "arm": arm, "from": first, **estimate._asdict()}
            for game, (first, *others) in product(experiment.games, [tuple(experiment.arms)])
            for arm in others
            if (estimate := beside(results, game, arm, first)) is not None
        ],
        "curves": [
            {"game": game, "arm": arm, "scenario": scenario, "iterations": iterations.tolist()}
            | {"returns": np.round(curves, 4).tolist()}
            for game, arm, scenario in product(experiment.games, experiment.arms, experiment.scenarios)
            for iterations, curves in [results.curve(game, arm, scenario)]
            if len(curves)
        ],
        "controls": [dict(control) for control in results.controls],
        "parameters": dict(results.parameters),
        "bases": {
            name: {key: known[key] for key in ("parameters", "source", "recipe", "losses") if key in known}
            for name, known in results.bases.items()
        },
    }
    return whole_report(data, results, sum(results.seconds.values()), facts, notes, experiment.as_data())


def claims_of(results: Reproduction, experiment: Experiment) -> list[Claim]:
    """Return the claims, judged; the one about sampling on pairs of arms that differ in nothing else."""
    settings = {arm: {**experiment.msgrpo, **changes} for arm, changes in experiment.arms.items()}
    sampling = {arm: own.pop("episode_sampling", "aaw") for arm, own in settings.items()}
    pairs = [
        (arm, other)
        for arm in experiment.arms
        for other in experiment.arms
        if sampling[arm] == "aaw" != sampling[other] and settings[arm] == settings[other]
    ]
    return judge(results, experiment.games, next(iter(experiment.arms)), pairs, experiment.scenarios)


def report_markdown(
    results: Reproduction,
    experiment: Experiment,
    facts: Facts,
    *,
    plots: Sequence[tuple[str, str]] = (),
    notes: Sequence[str] = (),
) -> str:
    """Return the report for people; ``plots`` are ``(file name, caption)``, and ``notes`` what a reader must know."""
    parts = [f"# {experiment.title}", _introduction(results, experiment)]
    parts += said_first(results, notes, "reproduction")
    parts += ["## Claims", _claims_text(claims_of(results, experiment))]
    parts += [f"![{caption}]({name})" for name, caption in plots]
    if any(known.get("losses") for known in results.bases.values()):
        parts += ["## Bases", _bases_text(results)]
    parts += ["## Fresh episodes", _finals_text(results, experiment)]
    parts += ["## Arms and runs", _arms_text(results, experiment)]
    if results.controls:
        parts += ["## Controls", _controls_text(results)]
    parts += ["## How it was done", _method(results, experiment, facts)]
    return "\n\n".join(parts) + "\n"


def _introduction(results: Reproduction, experiment: Experiment) -> str:
    sizes = results.parameters
    small = f"{sizes['small']:,} parameters" if "small" in sizes else "not made yet"
    large = f"; the large base has {sizes['large']:,}" if "large" in sizes else ""
    return (
        f"A small language model ({small}{large}) is pretrained on a noisy demonstrator's games, then post-trained "
        f"with MS-GRPO on {' and on '.join(experiment.games)}: {experiment.seeds} run(s) of {experiment.iterations} "
        f"iterations for each of the arms {', '.join(experiment.arms)}. Every agent is scored on the same "
        f"{experiment.final_episodes} fresh episodes per scenario, at temperature {experiment.temperature:g}, with the "
        "weights of a run's last iteration. Intervals are 95%."
    )


def _claims_text(claims: Sequence[Claim]) -> str:
    rows = []
    for claim in claims:
        if not claim.findings:
            rows.append([claim.text, "-", "-", "-", "-", f"**{claim.verdict}**"])
        for index, finding in enumerate(claim.findings):
            verdict = f"{finding.verdict}" + (f"; in all **{claim.verdict}**" if index == 0 else "")
            if len(claim.findings) == 1:
                verdict = f"**{finding.verdict}**"
            needed = f"> {finding.threshold:g}"
            text = claim.text if index == 0 else ""
            rows.append([text, finding.about, f"{finding.estimate:z.3f}", needed, finding.samples, verdict])
    return f"{table(['claim', 'figure', 'here (95% interval)', 'needed', 'from', 'here it'], rows)}\n\n{_LEGEND}"


_LEGEND = (
    "A figure *holds* when its whole interval is on the needed side, *does not hold* when none of it is, and is "
    "*undecided* otherwise. A claim of several figures holds when all of them do. Intervals against bases are from a "
    "bootstrap over runs and episodes, or of fewer than five runs Student's over them, joined with the episodes'; one "
    "run has none. Those between arms are Student's over runs paired by seed."
)


def _bases_text(results: Reproduction) -> str:
    rows = []
    for name, known in results.bases.items():
        recipe, losses = known.get("recipe"), known.get("losses")
        if recipe and losses:
            imitated = recipe["steps"] * recipe["batch_size"]
            loss = f"{np.mean(losses[-_LAST_LOSSES:]):.4f}"
            source = known.get("source")
            made = f"taken from {source}" if source else duration(known["seconds"])
            rows.append([name, f"{known['parameters']:,}", f"{imitated:,}", loss, made])
    note = (
        "*Loss*: cross entropy on the demonstrator's responses, in nats per token, over the last "
        f"{_LAST_LOSSES}% of the steps. A large base whose loss is above the small one's was not trained to its size."
    )
    return f"{note}\n\n{table(['base', 'parameters', 'examples imitated', 'loss', 'time'], rows)}"


def _finals_text(results: Reproduction, experiment: Experiment) -> str:
    players = {name: [scenarios] for name, scenarios in results.agents.items()}
    for game in experiment.games:
        for arm in experiment.arms:
            finals = [run.final for run in results.runs_of(game, arm) if run.final]
            if finals:
                players[f"small, post-trained on {game}, {arm} ({len(finals)} runs)"] = finals
    rows = []
    for name, finals in players.items():
        cells = [name]
        for scenario in experiment.scenarios:
            data = _estimates([one[scenario] for one in finals])
            success = f" / {data['success'].value:.1%}" if data["success"].value > 0 else ""
            invalid = f", {data['invalid_rate']:.1%} invalid" if data["invalid_rate"] >= 0.005 else ""
            cells.append(f"{data['returned']:z.3f}{success}{invalid}")
        rows.append(cells)
    note = "Mean return, and success rate behind the slash where the game has one."
    return f"{note}\n\n{table(['agent', *experiment.scenarios], rows)}"


def _arms_text(results: Reproduction, experiment: Experiment) -> str:
    rows, first = list[list[str]](), next(iter(experiment.arms))
    for game in experiment.games:
        for arm in experiment.arms:
            summary = arm_summary(results, game, arm)
            if summary is not None:
                shown = {name: number(value) for name, value in summary.items() if value is not None}
                spread = f"{shown['last']} ± {shown['deviation']}"
                figures = [shown["first"], spread, shown["worst"], shown["best"], shown["fallback"]]
                tokens = "-" if summary["tokens"] is None else f"{summary['tokens'] / 1e6:.2f}M"
                difference = None if arm == first else beside(results, game, arm, first)
                figures.append("-" if difference is None else f"{difference:z.3f}")
                rows.append([game, arm, str(summary["runs"]), *figures, tokens, duration(summary["seconds"])])
    head = [
        *("game", "arm", "runs", "start", "end (mean ± sd)", "worst run", "best run", "largest fall-back"),
        *(f"minus {first}, fresh", "tokens per run", "per run"),
    ]
    note = (
        "Mean return on the fixed evaluation episodes of the training scenario. *Fall-back* is how far a run's end "
        "lies below its own best evaluation, the largest of all runs. *Minus*: the difference of means on fresh "
        "episodes, of runs paired by seed. *Tokens*: read and written in rollouts, and in the rows of updates."
    )
    return f"{note}\n\n{table(head, rows)}"


def arm_summary(results: Reproduction, game: str, arm: str) -> dict[str, Any] | None:
    """Summarise the runs of an arm on the fixed episodes of their game; ``None`` if there are none."""
    _, curves = results.curve(game, arm, game)
    if not curves.size:
        return None
    last = curves[:, -1]
    runs = results.runs_of(game, arm)
    counted = [run.tokens for run in runs if run.tokens is not None]
    return {
        "runs": len(curves),
        "first": float(curves[:, 0].mean()),
        "last": float(last.mean()),
        "deviation": float(last.std(ddof=1)) if len(last) > 1 else 0.0,
        "worst": float(last.min()),
        "best": float(last.max()),
        "fallback": float((curves.max(axis=1) - last).max()),
        "tokens": float(np.mean(counted)) if counted else None,
        "seconds": float(np.mean([run.seconds for run in runs])),
    }


_CONTROL_COLUMNS = {  # title: (key of a control, form)
    "return": ("returned", ".3f"),
    "shuffled return": ("returned_shuffled", ".3f"),
    "same action again": ("agreement_again", ".1%"),
    "same action, shuffled": ("agreement_shuffled", ".1%"),
    "true statements": ("truth", ".1%"),
    "true when shuffled": ("truth_shuffled", ".1%"),
}


def _controls_text(results: Reproduction) -> str:
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}  # the runs of an arm are one row
    for control in results.controls:
        parts = control["agent"].split("/")
        agent = f"small, post-trained on {parts[1]}, {parts[2]}" if len(parts) == 4 else control["agent"]
        groups.setdefault((agent, control["scenario"]), []).append(control)
    rows = []
    for (agent, scenario), group in groups.items():
        row = [agent, scenario, str(len(group))]
        for key, form in _CONTROL_COLUMNS.values():
            values = [control[key] for control in group if control[key] is not None and isfinite(control[key])]
            row.append(number(float(np.mean(values)), form) if values else "-")
        rows.append(row)
    note = (
        "*Shuffled*: the model is shown the observation of another episode. A model that uses what it reads then "
        "plays worse and chooses the same action less often than when it is merely asked again. *True statements*: "
        "the share of the parts of its `think` text that hold on the board it is playing on."
    )
    return f"{note}\n\n{table(['agent', 'scenario', 'models', *_CONTROL_COLUMNS], rows)}"


def _method(results: Reproduction, experiment: Experiment, facts: Facts) -> str:
    lines = made_by(results, facts, "bases and runs made")
    lines.append(f"- time of all jobs together, one process each: {duration(sum(results.seconds.values()))}")
    lines.append(
        "- all settings are in report.json and in the recipe; the same seeds give the same runs on one machine"
    )
    for game in experiment.games:
        settings = experiment.training_settings(game, next(iter(experiment.arms)), 0)
        shown = {name: value for name, value in settings.items() if not name.startswith("eval_") and name != "seed"}
        lines.append(f"- MS-GRPO on {game}: " + ", ".join(f"{name} {value}" for name, value in shown.items()))
    for name in experiment.bases:
        known = results.bases.get(name, {})
        if known.get("recipe"):
            lines.append(f"- {name} base: " + ", ".join(f"{key} {value}" for key, value in known["recipe"].items()))
    return "\n".join(lines)


def _estimates(played: Sequence[Played]) -> dict[str, Any]:
    """Estimates of one agent's episodes, or of several runs' on the same episodes."""
    returns, successes = np.array([p.returns for p in played]), np.array([p.successes for p in played])
    lengths = np.array([p.lengths for p in played])
    return {
        "returned": mean_over_runs(returns),
        "success": mean_over_runs(successes, (0, 1)),
        "invalid_rate": float(np.array([p.invalid for p in played]).sum() / lengths.sum()),
        "length": float(lengths.mean()),
    }
