"""A picture for every question, as SVG."""

from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from agents.common import Estimate
from research.credit.plots import draw_each
from research.credit.questions.answers import COLLAPSED, Asked, group_sizes, plain_figure, shorts, splits, staleness
from research.jobs.pictures import COLOURS, figure_of, with_intervals


def draw_plots(findings: Asked, folder: Path) -> list[tuple[str, str]]:
    """Draw what was asked; returns ``(file name, caption)`` of every picture."""
    kinds: dict[str, tuple[Callable[[Asked], Any], Sequence[Any]]] = {
        "staleness": (_staleness, staleness(findings)),
        "groups": (_groups, group_sizes(findings)),
        "penalty": (_penalty, splits(findings)),
    }
    return draw_each({name: draw for name, (draw, there) in kinds.items() if there}, CAPTIONS, findings, folder)


CAPTIONS = {
    "staleness": "Cosine with the exact gradient by policy lag",
    "groups": "Cosine with the exact gradient by group size, equal episodes",
    "penalty": "The format penalty's share of the exact gradient by the valid share, and the entropy of valid actions "
    "in short runs from bases that hardly answer, by format penalty; below the grey line a policy has collapsed",
}


def _line(axis: Any, places: Sequence[float], values: Sequence[Estimate], colour: str, label: str) -> None:
    with_intervals(axis, places, values, color=colour, marker="o", markersize=3, capsize=2, label=label)


def _doubling(axis: Any, places: Sequence[int]) -> None:
    axis.set_xscale("log", base=2)
    axis.set_xticks(places, [str(place) for place in places])


def _staleness(findings: Asked) -> Any:
    figure, ((cosines, differences),) = figure_of(2, 1, 8.4, 3.4)
    answers = staleness(findings)
    (fresh,) = [each.value for each in answers if each.what[0] == 0]
    cosines.axhline(fresh.value, color="#999999", linewidth=0.8, label="lag 0")
    names = dict.fromkeys(each.what[1] for each in answers)
    for number, (colour, weights) in enumerate(zip(cycle(COLOURS), names, strict=False)):
        own = [each for each in answers if each.what[0] and each.what[1] == weights]
        places = [each.what[0] * 1.04**number for each in own]  # side by side, so that the bars can be seen
        _line(cosines, places, [each.value for each in own], colour, weights)
        _line(differences, places, [each.difference for each in own], colour, weights)
    differences.axhline(0, color="#999999", linewidth=0.8)
    cosines.set_ylabel("cosine")
    differences.set_ylabel("difference (none: to lag 0; others: to none)")
    for axis in (cosines, differences):
        _doubling(axis, sorted({each.what[0] for each in answers} - {0}))
        axis.set_xlabel("lag, iterations")
        axis.grid(alpha=0.3)
    cosines.legend(fontsize=7, title="weights", title_fontsize=7)
    return figure


def _groups(findings: Asked) -> Any:
    figure, ((cosines, quiet),) = figure_of(2, 1, 8.4, 3.4)
    answers = group_sizes(findings)
    for colour, method in zip(cycle(COLOURS), dict.fromkeys(each.what[0] for each in answers), strict=False):
        own = sorted((each for each in answers if each.what[0] == method), key=lambda each: each.what[1])
        _line(cosines, [each.what[1] for each in own], [each.value for each in own], colour, method)
    shares = plain_figure(findings, "groups", "size", "silent")
    _line(quiet, [*shares], [*shares.values()], COLOURS[0], "")
    cosines.set_ylabel("cosine")
    quiet.set_ylabel("groups without signal")
    for axis in (cosines, quiet):
        _doubling(axis, [*shares])
        axis.set_xlabel("episodes in a group")
        axis.grid(alpha=0.3)
    cosines.legend(fontsize=7)
    return figure


def _penalty(findings: Asked) -> Any:
    rows, runs = splits(findings), shorts(findings)
    games = list(dict.fromkeys(each.game for each in runs))
    figure, axes = figure_of(1 + len(games), 1, 3.4 * (1 + len(games)), 3.4)
    first, *others = axes[0]
    for colour, game in zip(cycle(COLOURS), dict.fromkeys(each.game for each in rows), strict=False):
        own = [each for each in rows if each.game == game]
        first.plot([each.valid for each in own], [each.share for each in own], "o", color=colour, ms=3, label=game)
    first.set_xlabel("valid share")
    first.set_ylabel("penalty's share of the gradient")
    first.legend(fontsize=7)
    for axis, game in zip(others, games, strict=True):
        for colour, penalty in zip(cycle(COLOURS), dict.fromkeys(each.penalty for each in runs), strict=False):
            under = [each for each in runs if (each.game, each.penalty) == (game, penalty)]
            for number, short in enumerate(under):
                curve = [[point[name] for point in short.points] for name in ("iterations", "entropy")]
                axis.plot(*curve, color=colour, linewidth=0.7, label="_" if number else f"{penalty:g}")
        axis.axhline(COLLAPSED, color="#999999", linewidth=0.8)
        axis.set_ylim(0, 1)
        axis.set_title(game, fontsize=8)
        axis.set_xlabel("iterations")
        axis.legend(fontsize=7, title="penalty", title_fontsize=7)
    if others:
        others[0].set_ylabel("entropy of valid actions, of the largest")
    for axis in axes[0]:
        axis.grid(alpha=0.3)
    return figure
