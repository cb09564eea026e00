"""The pictures of the experiment, as SVG: trainings by iteration, fresh episodes by player."""

from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from research.jobs.pictures import COLOURS, bars, figure_of, save, style
from research.reproduction.pretrained.findings import Findings

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
