"""The report of a reproduction: the claims with their figures and verdicts, then everything they rest on.

``Results -> Findings -> Markdown, JSON``. Figures are rounded for people in the Markdown and whole in the JSON.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from agents.clock import duration
from benchmark.reproduce.claims import Claim, judge, mean_over_runs
from benchmark.reproduce.results import Array, Played, Results
from benchmark.reproduce.settings import Experiment
from benchmark.score.statistics import Estimate, mean_estimate

Facts = Mapping[str, str]
"""Where and with what it ran: commit, versions, processes; shown as they are."""


def report_data(results: Results, experiment: Experiment, facts: Facts, notes: Sequence[str] = ()) -> dict[str, Any]:
    """The whole report as plain JSON data; numbers that aren't (NaN, infinite) become ``null``."""
    data = {
        "claims": [_claim_data(claim) for claim in claims_of(results, experiment)],
        "agents": [
            {"agent": name, "scenario": scenario, **_cell_data([played])}
            for name, scenarios in results.agents.items()
            for scenario, played in scenarios.items()
        ],
        "runs": _runs_data(results, experiment),
        "curves": _curves_data(results, experiment),
        "controls": [dict(control) for control in results.controls],
        "parameters": dict(results.parameters),
        "bases": {
            name: {key: known[key] for key in ("parameters", "source", "recipe", "losses") if key in known}
            for name, known in results.bases.items()
        },
        "missing": list(results.missing),
        "seconds": sum(results.seconds.values()),
        "notes": list(notes),
        "facts": dict(facts),
        "code": list(results.code),
        "settings": experiment.as_data(),
    }
    cleaned: dict[str, Any] = _clean(data)
    return cleaned


def claims_of(results: Results, experiment: Experiment) -> list[Claim]:
    """The claims, judged; the one about sampling only against arms that sample otherwise."""
    sampling = {
        arm: {**experiment.msgrpo, **changes}.get("episode_sampling") for arm, changes in experiment.arms.items()
    }
    main, *others = experiment.arms
    rivals = [arm for arm in others if sampling[arm] != sampling[main]]
    return judge(results, experiment.games, [main, *rivals], experiment.scenarios)


def report_markdown(
    results: Results,
    experiment: Experiment,
    facts: Facts,
    *,
    plots: Sequence[tuple[str, str]] = (),
    notes: Sequence[str] = (),
) -> str:
    """The report for people.

    Args:
        results: what was found.
        experiment: what was done.
        facts: where and with what.
        plots: ``(file name, caption)`` of pictures beside the report.
        notes: what a reader must know, such as what was cut short; they come first.
    """
    parts = ["# The paper's experiment in miniature", _introduction(results, experiment)]
    if results.missing:
        parts.append(_missing(results.missing))
    parts += [*(f"**Note.** {note}" for note in notes)]
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


# ---------------------------------------------------------------- parts of the Markdown


def _introduction(results: Results, experiment: Experiment) -> str:
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


def _missing(missing: Sequence[str]) -> str:
    shown = ", ".join(missing[:6]) + (f" and {len(missing) - 6} more" if len(missing) > 6 else "")
    return f"**This reproduction is not complete.** {len(missing)} jobs have no result: {shown}."


def _claims_text(claims: Sequence[Claim]) -> str:
    rows = []
    for claim in claims:
        if not claim.findings:
            rows.append([claim.text, "-", "-", "-", "-", f"**{claim.verdict}**"])
        for index, finding in enumerate(claim.findings):
            limit = f"> {finding.threshold:g}"
            first = [claim.text if index == 0 else "", finding.about, figure(finding.estimate), limit]
            verdict = f"{finding.verdict}" + (f"; in all **{claim.verdict}**" if index == 0 else "")
            if len(claim.findings) == 1:
                verdict = f"**{finding.verdict}**"
            rows.append([*first, finding.samples, verdict])
    table = _table(["claim", "figure", "here (95% interval)", "needed", "from", "here it"], rows)
    return f"{table}\n\n{_LEGEND}"


_LEGEND = (
    "A figure *holds* when its whole interval is on the needed side, *does not hold* when none of it is, and is "
    "*undecided* otherwise. A claim of several figures holds when all of them do. Intervals against bases are from a "
    "bootstrap over runs and episodes, those between arms are Student's over runs paired by seed."
)


def _bases_text(results: Results) -> str:
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
    return f"{note}\n\n{_table(['base', 'parameters', 'examples imitated', 'loss', 'time'], rows)}"


_LAST_LOSSES = 5  # losses are means over 1% of the steps


def _finals_text(results: Results, experiment: Experiment) -> str:
    rows = [[name, *_cells(scenarios, experiment)] for name, scenarios in results.agents.items()]
    for game in experiment.games:
        for arm in experiment.arms:
            runs = [run for run in results.runs_of(game, arm) if run.final]
            if runs:
                rows.append(
                    [
                        f"small, post-trained on {game}, {arm} ({len(runs)} runs)",
                        *(_run_cell([run.final[name] for run in runs]) for name in experiment.scenarios),
                    ]
                )
    note = "Mean return, and success rate behind the slash where the game has one."
    return f"{note}\n\n{_table(['agent', *experiment.scenarios], rows)}"


def _cells(scenarios: Mapping[str, Played], experiment: Experiment) -> list[str]:
    return [_run_cell([scenarios[name]]) if name in scenarios else "-" for name in experiment.scenarios]


def _run_cell(played: Sequence[Played]) -> str:
    data = _estimates(played)
    invalid = data["invalid_rate"]
    marks = f", {invalid:.1%} invalid" if invalid >= 0.005 else ""
    success = f" / {data['success'].value:.1%}" if data["success"].value > 0 else ""
    return f"{figure(data['returned'])}{success}{marks}"


def _arms_text(results: Results, experiment: Experiment) -> str:
    rows = []
    for game in experiment.games:
        for arm in experiment.arms:
            summary = arm_summary(results, game, arm)
            if summary is not None:
                spread = f"{summary['last']:.3f} ± {summary['deviation']:.3f}"
                rows.append(
                    [
                        game,
                        arm,
                        str(summary["runs"]),
                        f"{summary['first']:.3f}",
                        spread,
                        f"{summary['worst']:.3f}",
                        f"{summary['best']:.3f}",
                        f"{summary['fallback']:.3f}",
                        duration(summary["seconds"]),
                    ]
                )
    head = ["game", "arm", "runs", "start", "end (mean ± sd)", "worst run", "best run", "largest fall-back", "per run"]
    note = (
        "Mean return on the fixed evaluation episodes of the training scenario. *Fall-back* is how far a run's end "
        "lies below its own best evaluation, the largest of all runs."
    )
    return f"{note}\n\n{_table(head, rows)}"


def arm_summary(results: Results, game: str, arm: str) -> dict[str, Any] | None:
    """How the runs of an arm went on the fixed episodes of their game; ``None`` where there are none."""
    _, curves = results.curve(game, arm, game)
    if not curves.size:
        return None
    last = curves[:, -1]
    return {
        "runs": len(curves),
        "first": float(curves[:, 0].mean()),
        "last": float(last.mean()),
        "deviation": float(last.std(ddof=1)) if len(last) > 1 else 0.0,
        "worst": float(last.min()),
        "best": float(last.max()),
        "fallback": float((curves.max(axis=1) - last).max()),
        "area": float(curves.mean()),
        "seconds": float(np.mean([run.seconds for run in results.runs_of(game, arm)])),
    }


def _controls_text(results: Results) -> str:
    rows = [
        [
            agent,
            scenario,
            str(len(group)),
            *(
                _mean_of(group, name, pattern)
                for name, pattern in (
                    ("returned", "{:.3f}"),
                    ("returned_shuffled", "{:.3f}"),
                    ("agreement_again", "{:.1%}"),
                    ("agreement_shuffled", "{:.1%}"),
                    ("truth", "{:.1%}"),
                    ("truth_shuffled", "{:.1%}"),
                )
            ),
        ]
        for (agent, scenario), group in _grouped_controls(results).items()
    ]
    head = ["agent", "scenario", "models", "return", "shuffled return", "same action again"]
    head += ["same action, shuffled", "true statements", "true when shuffled"]
    note = (
        "*Shuffled*: the model is shown the observation of another episode. A model that uses what it reads then "
        "plays worse and chooses the same action less often than when it is merely asked again. *True statements*: "
        "the share of the parts of its `think` text that hold on the board it is playing on."
    )
    return f"{note}\n\n{_table(head, rows)}"


def _grouped_controls(results: Results) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for control in results.controls:
        parts = control["agent"].split("/")
        agent = f"small, post-trained on {parts[1]}, {parts[2]}" if len(parts) == 4 else control["agent"]
        groups.setdefault((agent, control["scenario"]), []).append(control)
    return groups


def _mean_of(group: Sequence[Mapping[str, Any]], name: str, pattern: str) -> str:
    values = [control[name] for control in group if control[name] is not None and isfinite(control[name])]
    return pattern.format(float(np.mean(values))) if values else "-"


def _method(results: Results, experiment: Experiment, facts: Facts) -> str:
    lines = [f"- bases and runs made with textbench {code}" for code in results.code]
    lines += [f"- {'report written with textbench' if name == 'textbench' else name}: {facts[name]}" for name in facts]
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


def figure(estimate: Estimate) -> str:
    """``"0.512 [0.470, 0.555]"``."""
    if not isfinite(estimate.value):
        return "-"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.3f}"
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


# ---------------------------------------------------------------- parts of the JSON


def _estimates(played: Sequence[Played]) -> dict[str, Any]:
    """Estimates of one agent's episodes, or of several runs' on the same episodes."""
    returns, successes = np.array([p.returns for p in played]), np.array([p.successes for p in played])
    several = len(played) > 1
    lengths = np.array([p.lengths for p in played])
    return {
        "returned": mean_over_runs(returns) if several else mean_estimate(returns[0]),
        "success": mean_over_runs(successes) if several else success_of(successes[0]),
        "invalid_rate": float(np.array([p.invalid for p in played]).sum() / lengths.sum()),
        "length": float(lengths.mean()),
    }


def success_of(successes: Array) -> Estimate:
    """A success rate with its interval, also where all or none succeed."""
    return mean_estimate(successes, (0, 1))


def _cell_data(played: Sequence[Played]) -> dict[str, Any]:
    data = _estimates(played)
    return {
        **data,
        "returned": data["returned"]._asdict(),
        "success": data["success"]._asdict(),
        "episodes": len(played[0].returns),
    }


def _runs_data(results: Results, experiment: Experiment) -> list[dict[str, Any]]:
    return [
        {
            "game": run.game,
            "arm": run.arm,
            "seed": run.seed,
            "training_seconds": run.seconds,
            "final": {name: _cell_data([run.final[name]]) for name in experiment.scenarios if name in run.final},
        }
        for run in results.runs
    ]


def _curves_data(results: Results, experiment: Experiment) -> list[dict[str, Any]]:
    rows = []
    for game in experiment.games:
        for arm in experiment.arms:
            for scenario in experiment.scenarios:
                if results.runs_of(game, arm):
                    iterations, curves = results.curve(game, arm, scenario)
                    rows.append(
                        {
                            "game": game,
                            "arm": arm,
                            "scenario": scenario,
                            "iterations": iterations.tolist(),
                            "returns": np.round(curves, 4).tolist(),
                        }
                    )
    return rows


def _claim_data(claim: Claim) -> dict[str, Any]:
    findings = [finding._asdict() | {"estimate": finding.estimate._asdict()} for finding in claim.findings]
    return {"name": claim.name, "text": claim.text, "verdict": claim.verdict, "findings": findings}


def _clean(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        return None
    return value
