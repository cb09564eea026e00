"""The pictures of a reproduction's report, as SVG: training curves, and bars against the large base."""

from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from research.jobs.intervals import mean_over_runs
from research.jobs.pictures import COLOURS, bars, figure_of, save, style
from research.reproduction.reproduction import Reproduction
from research.reproduction.settings import Experiment


def draw_plots(results: Reproduction, experiment: Experiment, folder: Path) -> list[tuple[str, str]]:
    """Draw what there is data for; returns ``(file name, caption)`` of every picture, raises as :func:`style` does."""
    drawn = []
    with style():
        for game in experiment.games:
            if any(run.game == game for run in results.runs):
                name = f"curves-{game}.svg"
                save(_curves(results, experiment, game), folder / name)
                caption = (
                    f"Training on {game}: mean return on the {experiment.evaluation_episodes} fixed episodes, mean "
                    "and standard deviation over runs, best run dotted"
                )
                drawn.append((name, caption))
        if results.agents:
            save(_bars(results, experiment), folder / "bars.svg")
            drawn.append(("bars.svg", f"Mean return on {experiment.final_episodes} fresh episodes, with 95% intervals"))
    return drawn


def _curves(results: Reproduction, experiment: Experiment, game: str) -> Any:
    scenarios = experiment.scenarios
    figure, axes = figure_of(len(scenarios), 1, 2.9 * len(scenarios), 2.7)
    for axis, scenario in zip(axes[0], scenarios, strict=True):
        for colour, arm in zip(cycle(COLOURS), experiment.arms, strict=False):
            iterations, curves = results.curve(game, arm, scenario)
            if not curves.size:
                continue
            mean = curves.mean(axis=0)
            deviation = curves.std(axis=0, ddof=1) if len(curves) > 1 else np.zeros_like(mean)
            axis.plot(iterations, mean, color=colour, label=f"{arm} ({len(curves)} runs)")
            axis.fill_between(iterations, mean - deviation, mean + deviation, color=colour, alpha=0.15, linewidth=0)
            axis.plot(iterations, curves[curves[:, -1].argmax()], color=colour, linestyle=":", linewidth=1)
        large = results.agents.get("large", {}).get(scenario)
        if large is not None:
            axis.axhline(large.returns.mean(), color="#444444", linestyle="--", linewidth=1, label="large base")
        axis.set_title(scenario)
        axis.set_xlabel("iterations")
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("mean return")
    axes[0][0].legend(fontsize=7)
    return figure


def _bars(results: Reproduction, experiment: Experiment) -> Any:
    """Draw the mean returns of the bases, the reference agents and the method's own arm of every game."""
    groups = [
        (
            name,
            "#999999" if name in experiment.reference_agents else "#444444" if name == "large" else "#bbbbdd",
            {scenario: played.returns[None] for scenario, played in scenarios.items()},
        )
        for name, scenarios in results.agents.items()
    ]
    main, names = next(iter(experiment.arms)), experiment.scenarios
    for colour, game in zip(cycle(COLOURS), experiment.games, strict=False):
        returns = {name: values for name in names if len(values := results.final_returns(game, main, name))}
        if returns:
            groups.append((f"small, MS-GRPO on {game}", colour, returns))
    figure, axes = figure_of(len(names), 1, 1.6 + 2.6 * len(names), 0.8 + 0.3 * len(groups))
    for axis, scenario in zip(axes[0], names, strict=True):
        shown = [
            (place, colour, mean_over_runs(per_scenario[scenario]))
            for place, (_, colour, per_scenario) in enumerate(groups)
            if scenario in per_scenario
        ]
        bars(axis, scenario, [label for label, _, _ in groups], shown, named=axis is axes[0][0])
        axis.set_xlabel("mean return")
    return figure
