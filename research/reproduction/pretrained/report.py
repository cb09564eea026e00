"""The report of the experiment with a pretrained model: ``Findings -> Markdown, JSON``.

What hasn't been run is named as such, and has no figures.
"""

from collections.abc import Sequence
from itertools import cycle
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from agents.common import duration
from benchmark.show import number
from research.jobs.pictures import COLOURS, bars, figure_of, save, style
from research.jobs.report import Facts, made_by, table, whole_report
from research.reproduction.pretrained.findings import Findings, Fresh, Trained, blind_return, blind_success
from research.reproduction.pretrained.settings import Arm


def report_markdown(
    findings: Findings,
    facts: Facts,
    *,
    command: str,
    plots: Sequence[tuple[str, str, str]] = (),
    notes: Sequence[str] = (),
) -> str:
    """Return the report for people; ``plots`` are ``(part, file name, caption)``, ``notes`` what a reader must know."""
    experiment = findings.experiment
    parts = [f"# {experiment.title}", _introduction(findings, command), *(f"**Note.** {note}" for note in notes)]
    states = []
    for name, part in experiment.parts.items():
        missing, jobs = findings.missing_of(name)
        state = "done" if not missing else "not run yet" if missing == jobs else f"{jobs - missing} of {jobs} jobs done"
        states.append([part.title, f"`{command} --parts {name}`", state])
    parts.append(table(["part", "command", "state"], states))
    for name, about in experiment.parts.items():
        missing, jobs = findings.missing_of(name)
        if missing == jobs:
            continue  # the table above says so
        parts += [f"## {about.title}", about.about] if about.about else [f"## {about.title}"]
        texts = (_runs_text(findings, name), _fresh_text(findings, name), _compare_text(findings, name))
        parts += [text for text in texts if text]
        parts += [f"![{caption}]({file})" for part, file, caption in plots if part == name]
    parts += ["## The warm starts", _starts_text(findings)]
    lines = [*made_by(findings, facts), f"- time of all jobs together: {duration(findings.seconds)}"]
    lines.append("- settings of every job lie beside its result (settings.json); report.json has all figures")
    parts += ["## How it was done", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def _introduction(findings: Findings, command: str) -> str:
    experiment = findings.experiment
    sizes = [start["base_parameters"] for start in findings.starts.values()]
    size = f" ({sizes[0]:,} parameters)" if sizes else ""
    return (
        f"The pretrained model is `{experiment.model}`{size}. Every player is scored on the same "
        f"{experiment.episodes} fresh episodes of a scenario (seeds first_seed + {experiment.first_episode} + k, which "
        f"neither training nor its evaluations play), at temperature {experiment.temperature:g}; a response that can't "
        "be read leads to a random move. Figures are mean returns, which on the lakes are success rates, with 95% "
        "intervals: of several runs over runs and episodes, of one player over episodes. *Unseen* are the "
        "episodes whose layouts the training, its warm start included, never drew. The command is "
        f"`{command}`, which goes on where it was stopped."
    )


def _runs_text(findings: Findings, part: str) -> str:
    experiment = findings.experiment
    arms = {name: arm for name, arm in experiment.arms.items() if arm.part == part}
    rows = [_run_row(findings, name, arm, findings.runs[name]) for name, arm in arms.items() if name in findings.runs]
    waiting = [name for name in arms if name not in findings.runs]
    head = [
        *("training", "begins from", "settings of its own", "runs", "own success", "above blind"),
        *("evaluation", "entropy", "processor time of a run"),
    ]
    note = (
        f"*Own success*: of the episodes that it learnt from in its last {experiment.last_iterations} iterations, mean "
        "over the runs; *above blind* is that less what the best player gets who doesn't read, and says nothing where "
        "training begins elsewhere than the game does. *Evaluation*: success on the fixed episodes before and after. "
        "*Entropy*: nats a token, over the same last iterations."
    )
    told = f"{note}\n\n{table(head, rows)}" if rows else ""
    return "\n\n".join([*([told] if told else []), *([f"Not run yet: {', '.join(waiting)}."] if waiting else [])])


def _run_row(findings: Findings, name: str, arm: Arm, runs: Sequence[Trained]) -> list[str]:
    last = findings.experiment.last_iterations
    own = [float(run.success[-last:].mean()) for run in runs]
    blind = blind_success(findings.experiment, name)
    points = [(run.points[0][1], run.points[-1][1]) for run in runs if run.points]
    entropy = [float(run.entropy[-last:].mean()) for run in runs]
    differs = [f"TRL's GRPO, {arm.equal} of {arm.like}"] if arm.trainer == "trl" else []
    differs += [f"{key} {value}" for key, value in {**arm.view, **arm.msgrpo}.items()]
    return [
        name,
        arm.start or findings.experiment.model,
        ", ".join(differs) or "-",
        f"{len(runs)} of {arm.seeds}",
        f"{np.mean(own):.1%}" + (f" ({min(own):.1%} to {max(own):.1%})" if len(own) > 1 else ""),
        "-" if blind is None else f"{np.mean(own) - blind:+.1%}",
        " to ".join(f"{np.mean(side):.1%}" for side in zip(*points, strict=True)) if points else "-",
        number(float(np.mean(entropy))) if isfinite(np.mean(entropy)) else "-",
        duration(float(np.mean([run.seconds for run in runs]))),
    ]


def _fresh_text(findings: Findings, part: str) -> str:
    players = [name for name, player in findings.experiment.everyone.items() if player.part == part]
    there = [name for name in players if any(key[0] == name for key in findings.fresh)]
    if not there:
        return ""
    scenarios = list(dict.fromkeys(s for name in players for s in findings.experiment.everyone[name].scenarios))
    rows = [[name, *(_fresh_cell(findings.fresh.get((name, scenario))) for scenario in scenarios)] for name in there]
    blind = [(name, blind_return(name)) for name in scenarios]
    rows.append(["*blind play, exact*", *("-" if value is None else number(value) for _, value in blind)])
    return f"Fresh episodes:\n\n{table(['player', *scenarios], rows)}"


def _fresh_cell(fresh: Fresh | None) -> str:
    if fresh is None:
        return "not run yet"
    told = [f"{fresh.value:z.3f}"]
    runs, episodes = fresh.returns.shape
    mean, count = fresh.on_unseen
    if count < episodes:
        told.append(f"unseen ({count}) {number(mean) if isfinite(mean) else '-'}")
    if fresh.runs > 1:
        told.append(f"worst of {runs} runs {number(fresh.worst)}")
    if runs < fresh.runs:
        told.append(f"{fresh.runs - runs} runs not yet")
    if fresh.invalid >= 0.005:
        told.append(f"{fresh.invalid:.1%} invalid")
    return "; ".join(told)


def _compare_text(findings: Findings, part: str) -> str:
    rows = []
    for first, second in findings.experiment.parts[part].compare:
        for scenario in findings.experiment.everyone[first].scenarios:
            found = findings.difference(first, second, scenario)
            if found is not None:
                estimate, of = found
                rows.append([f"{first} minus {second}", scenario, f"{estimate:z.3f}", _told_apart(estimate), of])
    if not rows:
        return ""
    return f"Differences:\n\n{table(['difference of', 'on', 'value (95% interval)', '', 'from'], rows)}"


def _told_apart(estimate: Any) -> str:
    if estimate.low is None:
        return "no interval"
    return "better" if estimate.low > 0 else "worse" if estimate.high < 0 else "not told apart"


def _starts_text(findings: Findings) -> str:
    rows = []
    for name, found in findings.starts.items():
        start = findings.experiment.starts[name.partition("/")[0]]
        before, after = found["held_out"]
        rows.append(
            [
                name,
                ", ".join(start.scenarios),
                f"{found['examples']:,} of {', '.join(start.teachers)}",
                f"{found['trained_parameters']:,}",
                f"{number(before)} to {number(after)}",
                f"{found['tokens'] / 1e6:.2f}M ({found['tokens_computed'] / 1e6:.2f}M computed)",
                duration(found["processor_seconds"]),
            ]
        )
    head = ["warm start", "scenarios", "decisions", "weights trained", "loss on others", "tokens", "processor time"]
    note = "*Loss on others*: nats per response token on decisions that it doesn't learn from, before and after."
    return f"{note}\n\n{table(head, rows)}" if rows else "None was made yet."


def report_data(findings: Findings, facts: Facts, notes: Sequence[str] = ()) -> dict[str, Any]:
    """Return the whole report as plain JSON data; NaN and infinity become ``null``."""
    experiment = findings.experiment
    data: dict[str, Any] = {
        "parts": {
            name: dict(zip(("missing", "jobs"), findings.missing_of(name), strict=True)) for name in experiment.parts
        },
        "runs": [
            {"arm": name, "blind": blind_success(experiment, name), "seed": run.seed, "success": run.success.tolist()}
            | {"entropy": run.entropy.tolist(), "evaluations": run.points}
            | {"processor_seconds": run.seconds, "tokens": run.tokens}
            for name, runs in findings.runs.items()
            for run in runs
        ],
        "fresh": [
            {"player": player, "scenario": scenario, **one.value._asdict()}
            | {"runs": len(one.returns), "runs_to_be": one.runs, "episodes": one.returns.shape[1]}
            | {"each": one.returns.mean(axis=1).tolist(), "success": float(one.successes.mean())}
            | {"unseen": dict(zip(("value", "episodes"), one.on_unseen, strict=True)), "invalid_rate": one.invalid}
            for (player, scenario), one in findings.fresh.items()
        ],
        "differences": [
            {"part": name, "first": first, "second": second, "scenario": scenario, **found[0]._asdict(), "of": found[1]}
            for name, part in experiment.parts.items()
            for first, second in part.compare
            for scenario in experiment.everyone[first].scenarios
            if (found := findings.difference(first, second, scenario)) is not None
        ],
        "starts": {
            name: {key: value for key, value in start.items() if key != "layouts"}
            for name, start in findings.starts.items()
        },
    }
    return whole_report(data, findings, findings.seconds, facts, notes, experiment.as_data())


SMOOTHED = 5  # iterations that a point of a curve is the mean of


def draw_plots(findings: Findings, folder: Path) -> list[tuple[str, str, str]]:
    """Draw what there is data for; returns ``(part, file name, caption)`` of every picture, raises as :func:`style`."""
    drawn = []
    experiment = findings.experiment
    with style():
        for part in experiment.parts:
            arms = [name for name, arm in experiment.arms.items() if arm.part == part and name in findings.runs]
            if arms:
                save(_curves(findings, arms), folder / f"pretrained-curves-{part}.svg")
                caption = (
                    f"Success of the episodes that a training learns from (mean over {SMOOTHED} iterations and over "
                    "the runs; the band is their range), and of its evaluations (points)"
                )
                drawn.append((part, f"pretrained-curves-{part}.svg", caption))
            players = [name for name, player in experiment.everyone.items() if player.part == part]
            scenarios = list(dict.fromkeys(key[1] for key in findings.fresh if key[0] in players))
            if scenarios:
                save(_bars(findings, players, scenarios), folder / f"pretrained-fresh-{part}.svg")
                drawn.append(
                    (part, f"pretrained-fresh-{part}.svg", "Mean return on fresh episodes, with 95% intervals")
                )
    return drawn


def _curves(findings: Findings, arms: list[str]) -> Any:
    figure, axes = figure_of(1, 1, 7.0, 2.0 + 0.16 * len(arms))
    axis = axes[0][0]
    for colour, line, name in zip(cycle(COLOURS), cycle(["-"] * 6 + ["--"] * 6 + [":"] * 6), arms, strict=False):
        runs = findings.runs[name]
        # of the iterations that all runs have: means of those before each, itself included
        lengths = range(min(len(run.success) for run in runs))
        means = [[run.success[max(0, at + 1 - SMOOTHED) : at + 1].mean() for at in lengths] for run in runs]
        curves = np.array(means, dtype=np.float64)
        iterations = np.arange(1, curves.shape[1] + 1)
        axis.plot(iterations, curves.mean(axis=0), color=colour, linestyle=line, linewidth=1, label=name)
        if len(runs) > 1:
            axis.fill_between(iterations, curves.min(axis=0), curves.max(axis=0), color=colour, alpha=0.15, linewidth=0)
        points = [(done, success) for run in runs for done, success, _ in run.points]
        if points:
            axis.plot(*zip(*points, strict=True), "o", color=colour, markersize=3)
    axis.set_xlabel("iterations")
    axis.set_ylabel("success")
    axis.set_ylim(-0.02, 1.02)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=6, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _bars(findings: Findings, players: list[str], scenarios: list[str]) -> Any:
    there = [name for name in players if any((name, scenario) in findings.fresh for scenario in scenarios)]
    columns = min(4, len(scenarios))
    rows = -(-len(scenarios) // columns)
    figure, axes = figure_of(columns, rows, 1.6 + 2.4 * columns, rows * (0.8 + 0.2 * len(there)))
    for place, axis in enumerate(axes.flat):
        if place >= len(scenarios):
            axis.set_visible(False)
            continue
        shown = [
            (index, COLOURS[0] if fresh.runs > 1 else "#999999", fresh.value)
            for index, name in enumerate(there)
            if (fresh := findings.fresh.get((name, scenarios[place]))) is not None
        ]
        bars(axis, scenarios[place], there, shown, named=place % columns == 0)
    return figure
