"""The report on the questions: ``Asked -> Markdown, JSON, SVG``."""

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from agents.common import Estimate
from research.credit.plots import draw_each
from research.credit.questions.answers import (
    COLLAPSED,
    Answer,
    Asked,
    collapses,
    group_sizes,
    penalties,
    plain_figure,
    shorts,
    splits,
    staleness,
)
from research.credit.report import how_done, pictured, plain, without_facts
from research.jobs.pictures import COLOURS, figure_of, with_intervals
from research.jobs.report import Facts, said_first, table, whole_report


def report_data(findings: Asked, facts: Facts, notes: Sequence[str] = ()) -> dict[str, Any]:
    """Return the whole report as plain JSON data, all answers beside what they are computed from."""
    told = {"staleness": staleness, "groups": group_sizes, "penalties": penalties}
    data = {
        **{name: plain(of(findings)) for name, of in told.items()},
        "splits": plain(splits(findings)),
        "collapses": [{"penalty": size, **own.to_json()} for size, own in collapses(findings).items()],
        "asked": [{"job": name, **without_facts(result)} for name, result in findings.asked.items()],
    }
    return whole_report(data, findings, sum(findings.seconds.values()), facts, notes, findings.study.as_data())


def report_markdown(
    findings: Asked, facts: Facts, *, plots: Sequence[tuple[str, str]] = (), notes: Sequence[str] = ()
) -> str:
    """Return the report for people."""
    parts = ["# What else an exact gradient decides", *said_first(findings, notes, "study")]
    parts += [*_answered(findings, pictured(plots)), "## How it was done"]
    parts.append(how_done(findings, facts, findings.study.temperature))
    return "\n\n".join(part for part in parts if part) + "\n"


def _answered(findings: Asked, pictures: Mapping[str, str]) -> list[str]:
    """Return the sections of the questions that were asked."""
    parts = []
    if stale := staleness(findings):
        apart, above = (plain_figure(findings, "staleness", "lag", name) for name in ("kl", "clipped"))
        bias = {each.what: each.value.value for each in staleness(findings, "bias")}
        rows = [
            [str(lag), weights, *_told(each), f"{bias.get(each.what, float('nan')):.2f}", f"{apart[lag].value:.3f}",
             f"{above[lag].value:.2%}"]
            for each in stale
            for lag, weights in [each.what]
        ]  # fmt: skip
        head = ["lag", "weights", "cosine", "difference", "p (Holm)", "of the mean", "nats", "above the cap"]
        parts += ["## Staleness", _STALENESS, table(head, rows), pictures.get("staleness.svg", "")]
    if sized := group_sizes(findings):
        silent = plain_figure(findings, "groups", "size", "silent")
        rows = [
            [method, str(size), *_told(each), f"{silent[size]:.2f}"] for each in sized for method, size in [each.what]
        ]
        head = ["method", "group size", "cosine", "difference", "p (Holm)", "groups without signal"]
        parts += ["## Group size at equal tokens", _GROUPS, table(head, rows), pictures.get("groups.svg", "")]
    if split := splits(findings):
        rows = [[*map(str, each[:3]), *(f"{number:.3f}" for number in each[3:])] for each in split]
        head = ["game", "run", "where", "valid", "penalty's share", "cosine"]
        parts += ["## The format penalty's part of the gradient", _PENALTY, table(head, rows)]
        parts += [pictures.get("penalty.svg", "")]
    if shorts(findings):
        share = collapses(findings)
        rows = [[f"{size:g}", *_told(each), f"{share[size]:.2f}"] for each in penalties(findings) for size in each.what]
        head = ["penalty", "return at the end", "less that at 1", "p (Holm)", "collapsed before a success"]
        parts += ["### Training under it", _TRAINING, table(head, rows)]
    return parts


def _told(each: Answer) -> tuple[str, str, str]:
    return f"{each.value:.3f}", f"{each.difference:.3f}", f"{each.p_holm:.2g}"


_STALENESS = (
    "Cosine of a batch's gradient with the exact one of the policy that learns, where a policy some iterations older "
    "played the batch. The difference is to lag 0 without weights, and with weights to none at that lag. *Of the "
    "mean*: the cosine of the mean gradient. *Nats*: KL of an episode's responses from the old policy to the new."
)
_GROUPS = (
    "Cosine of a batch's gradient with the exact one of all starts, at equal numbers of episodes, and so of tokens. "
    "The difference is to groups of 8."
)
_PENALTY = (
    "The exact gradient is linear in what is paid, so it is the sum of a part of the game's rewards and one of the "
    "format penalty. The share is that of the penalty's length in the sum of both lengths, at a penalty of 1."
)
_TRAINING = (
    "Short runs from the bases that hardly answer. A policy has collapsed before its first success where the entropy "
    f"of its valid actions is below {COLLAPSED:g} of the largest before any episode succeeded."
)


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
