"""The pictures of a study of credit, as SVG, with matplotlib (the ``plots`` extra). Equal results give equal files."""

from collections.abc import Callable, Mapping
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from agents.common import Estimate, student
from research.credit.arms import LEARNING, curves, effects, standings
from research.credit.findings import Findings, draw_of, methods_of, value_of
from research.credit.settings import STAGES
from research.credit.tables import estimate_of
from research.jobs.pictures import COLOURS, figure_of, save, style, with_intervals

RULES = ("aaw", "unbiased", "uniform_nonzero", "uniform", "off")


def draw_plots(findings: Findings, folder: Path) -> list[tuple[str, str]]:
    """Draw what there is data for; return ``(file name, caption)`` of every picture."""
    kinds: dict[str, tuple[Callable[[Any], Any], Any]] = {
        "fidelity": (_fidelity, findings.measured),
        "draws": (_draws, findings.drawn or findings.thinking),
        "dose": (_doses, curves(findings)),
        "effects": (_effects, effects(findings)),
        "curves": (_curves, any(arm not in findings.study.crossed for _, arm in findings.runs)),
    }
    return draw_each({name: draw for name, (draw, there) in kinds.items() if there}, CAPTIONS, findings, folder)


def draw_each(
    kinds: Mapping[str, Callable[[Any], Any]], captions: Mapping[str, str], findings: Any, folder: Path
) -> list[tuple[str, str]]:
    """Save the picture of every kind, and return ``(file name, caption)`` of each."""
    with style():
        for name, draw in kinds.items():
            save(draw(findings), folder / f"{name}.svg")
    return [(f"{name}.svg", captions[name]) for name in kinds]


CAPTIONS = {
    "fidelity": "Correlation of assigned and true advantage, by game and stage, the mean over its runs",
    "draws": "Cosine of the update of M drawn episodes and the exact gradient (for the model that reasons: the mean "
    "gradient of all other batches), by the tokens of the update, in the first run of each game, with 95% intervals "
    "over batches",
    "dose": "Learning by the dose of true credit, with 95% intervals over seeds; stars: methods as they are, at their "
    "measured correlation with the true advantage",
    "effects": "Learning at every level of every factor, averaged over the others, with 95% intervals over seeds",
    "curves": "Exact expected return by tokens spent, mean over the seeds; bars: its range",
}


def _fidelity(findings: Findings) -> Any:
    cells, methods = list(dict.fromkeys((game, stage) for game, _, stage in findings.measured)), methods_of(findings)
    table = np.full((len(methods), len(cells)), np.nan)
    for row, method in enumerate(methods):
        for column, (game, stage) in enumerate(cells):
            documents = [found for cell, found in findings.measured.items() if (cell[0], cell[2]) == (game, stage)]
            known = [value for each in documents if (value := value_of(each, method, "correlation")) is not None]
            table[row, column] = np.mean(known) if known else np.nan
    order = np.argsort(-np.nanmean(np.where(np.isnan(table), np.nan, table), axis=1))
    figure, axes = figure_of(1, 1, 2.2 + 0.42 * len(cells), 1.6 + 0.24 * len(methods))
    axis = axes[0][0]
    axis.imshow(table[order], vmin=-1, vmax=1, cmap="RdBu", aspect="auto")
    for row, index in enumerate(order):
        for column, value in enumerate(table[index]):
            if not np.isnan(value):
                colour = "white" if abs(value) > 0.6 else "black"
                axis.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=6, color=colour)
    axis.set_yticks(range(len(methods)), [methods[index] for index in order])
    axis.set_xticks(
        range(len(cells)), [f"{game} {stage}" for game, stage in cells], rotation=60, ha="right", fontsize=7
    )
    return figure


def _draws(findings: Findings) -> Any:
    games = [game for game in findings.study.games if any((game, 0, stage) in findings.drawn for stage in STAGES)]
    rows = [[(f"{game}, {stage}", findings.drawn.get((game, 0, stage)), "exact") for stage in STAGES] for game in games]
    reasoned = [(f"{name}, thinking", document, "others") for name, document in findings.thinking.items()]
    rows += [[*reasoned, *[("", None, "")] * len(STAGES)][: len(STAGES)]] if reasoned else []
    figure, axes = figure_of(len(STAGES), len(rows), 8.4, 1.1 + 1.9 * len(rows))
    for line, cells in zip(axes, rows, strict=True):
        for axis, (title, document, reference) in zip(line, cells, strict=True):
            if document is None:
                axis.set_visible(False)
                continue
            for colour, rule in zip(cycle(COLOURS), RULES, strict=False):
                sizes = findings.study.draw_sizes[: 1 if rule == "off" else None]
                found = [draw for m in sizes if (draw := draw_of(document, rule, m, reference)) is not None]
                cosines, marker = [estimate_of(draw["cosine"]) for draw in found], "s" if rule == "off" else "o"
                look: Any = {"marker": marker, "markersize": 3, "linewidth": 1, "capsize": 2}
                with_intervals(axis, [draw["tokens"] for draw in found], cosines, color=colour, label=rule, **look)
            axis.set_title(title, fontsize=8)
            axis.set_ylim(0, 1.03)
            axis.set_xscale("log")
            axis.tick_params(which="minor", labelbottom=False)
            axis.grid(alpha=0.3)
    shown = next(axis for line in axes for axis in line if axis.get_visible())
    shown.legend(fontsize=6)
    figure.supxlabel("response tokens of the update", fontsize=8)
    return figure


def _doses(findings: Findings) -> Any:
    drawn, rows = curves(findings), standings(findings)
    figure, axes = figure_of(len(drawn), 1, 4.2 * len(drawn), 3.6)
    for axis, (game, curve) in zip(axes[0], drawn.items(), strict=True):
        for colour, (noise, own) in zip(COLOURS, curve.items(), strict=False):
            found = [student(np.array([*learnt.values()])) for learnt in own.values()]
            with_intervals(axis, [*own], found, color=colour, marker="o", markersize=3, capsize=2, label=noise)
        for row in rows:
            if row.game == game:
                axis.plot(row.correlation, row.learning.value, "k*", markersize=5)
                axis.annotate(row.arm, (row.correlation, row.learning.value), fontsize=6)
        axis.set_title(game)
        axis.set_xlabel("correlation with the true advantage")
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("learning")
    axes[0][0].legend(fontsize=7, title="noise by", title_fontsize=7)
    return figure


def _effects(findings: Findings) -> Any:
    rows = [row for row in effects(findings) if row.figure == LEARNING]
    games = list(dict.fromkeys(row.game for row in rows))
    names = list(dict.fromkeys(f"{row.factor} {row.level}" for row in rows))
    figure, axes = figure_of(len(games), 1, 1.6 + 3.2 * len(games), 0.9 + 0.22 * len(names))
    for axis, game in zip(axes[0], games, strict=True):
        for colour, factor in zip(cycle(COLOURS), dict.fromkeys(row.factor for row in rows), strict=False):
            own = [row for row in rows if (row.game, row.factor) == (game, factor)]
            places = [names.index(f"{row.factor} {row.level}") for row in own]
            look: Any = {"marker": "o", "linestyle": "", "markersize": 4, "capsize": 2}
            with_intervals(axis, places, [row.mean for row in own], across=True, color=colour, **look)
        axis.set_title(game)
        axis.set_xlabel("learning")
        axis.grid(alpha=0.3)
        axis.set_yticks(range(len(names)), names if axis is axes[0][0] else [""] * len(names), fontsize=7)
        axis.set_ylim(len(names) - 0.5, -0.5)
    return figure


def _curves(findings: Findings) -> Any:
    games = [game for game in findings.study.trained if any(key[0] == game for key in findings.runs)]
    figure, axes = figure_of(len(games), 1, 4.2 * len(games), 3.6)
    colours = dict(zip(findings.study.arms, cycle([*COLOURS, "#000000", "#999999", "#f0e442"]), strict=False))
    for axis, game in zip(axes[0], games, strict=True):
        for arm in findings.study.arms:
            runs = () if arm in findings.study.crossed else findings.runs.get((game, arm), ())
            if runs:
                tokens = np.mean([run.tokens for run in runs], axis=0)
                curves = np.array([run.returns for run in runs])
                ranges = [Estimate(each.mean(), each.min(), each.max()) for each in curves.T]
                look: Any = {"color": colours[arm], "linewidth": 1.2, "elinewidth": 0.4}
                with_intervals(axis, tokens, ranges, label=f"{arm} ({len(runs)})", **look)
        axis.set_title(game)
        axis.set_xlabel("tokens")
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("expected return")
    axes[0][-1].legend(fontsize=7)
    return figure
