"""The tables and sentences of a study's report, each from the findings alone."""

from collections.abc import Mapping
from math import nan
from typing import Any

import numpy as np

from agents.common.clock import duration
from agents.common.intervals import Estimate, student
from benchmark.score.statistics import holm, student_p_value
from research.credit.findings import (
    CONTROLS,
    Comparison,
    Findings,
    arms_on,
    draw_of,
    over_cells,
    predictions,
    value_of,
)
from research.credit.settings import STAGES
from research.jobs.report import table

_COLUMNS = {
    "correlation": "correlation",
    "sign_agreement": "sign",
    "mean_correlation": "without luck",
    "gradient_cosine": "cosine",
    "gradient_bias_cosine": "mean gradient",
}
_PREDICTORS = tuple(_COLUMNS)


def fidelity_table(findings: Findings) -> str:
    """Every method's means over games and stages, the one of highest correlation first."""
    by_figure = {name: {row.method: row for row in over_cells(findings, name)} for name in _COLUMNS}
    rows = []
    for method, first in by_figure["correlation"].items():
        cells = [
            _compared(by_figure[name].get(method), name in ("correlation", "gradient_cosine")) for name in _COLUMNS
        ]
        seconds = mean_of(findings, method, lambda each, document: each["seconds"])
        fresh = mean_of(findings, method, fresh_tokens)
        rows.append([method, str(first.cells), *cells, f"{fresh:.1f}", f"{1000 * seconds:.0f} ms"])
    return table(["method", "cells", *_COLUMNS.values(), "fresh", "time"], rows)


def _compared(row: Comparison | None, with_difference: bool) -> str:
    if row is None:
        return "-"
    low, high = row.minus_plain.low, row.minus_plain.high
    if not with_difference or low is None or high is None or low == high:
        return f"{row.mean:.3f}"
    return f"{row.mean:.3f} ({row.minus_plain:+.3f})"


def mean_of(findings: Findings, method: str, of: Any) -> float:
    """The mean over games and stages of ``of(method's entry, document)``."""
    values: list[float] = [
        of(each, document)
        for document in findings.measured.values()
        for each in document["methods"]
        if each["name"] == method
    ]
    return sum(values) / max(1, len(values))


def fresh_tokens(each: Mapping[str, Any], document: Mapping[str, Any]) -> float:
    """Response tokens of fresh rollouts for each response token of a batch."""
    setting = document["setting"]
    played = document["episode_tokens"] * setting["groups"] * setting["group_size"]
    return float(each["extra_tokens"] / played) if played else 0.0


def stages_table(findings: Findings) -> str:
    """What the policy of each game and stage expects, and how good the plain method's and the best one's credit is."""
    rows = []
    for (game, stage), document in findings.measured.items():
        found = {
            each["name"]: value_of(document, each["name"], "correlation")
            for each in document["methods"]
            if each["name"] not in CONTROLS
        }
        known = {name: value for name, value in found.items() if value is not None}
        best = max(known, key=lambda name: known[name]) if known else "-"
        truth = document["truth"] or {}
        rows.append(
            [
                *(game, stage, str(truth.get("states", "-")), _number(truth.get("expected_return"))),
                *(_number(known.get("msgrpo")), f"{best} {_number(known.get(best))}"),
                _number(value_of(document, "msgrpo", "gradient_cosine")),
                _number(value_of(document, "oracle", "gradient_cosine")),
            ]
        )
    head = [
        "game",
        "stage",
        "states",
        "expected return",
        "msgrpo",
        "best correlation",
        "msgrpo cosine",
        "oracle cosine",
    ]
    return table(head, rows)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def draws_table(findings: Findings) -> str:
    """AAW against the other rules, at every game, stage and number of draws."""
    rows = []
    for (game, stage), document in findings.drawn.items():
        (first, *_) = [each for each in document["methods"] if each["name"] == "msgrpo"]
        where, silent = f"{game}, {stage}", first["without_signal"]
        rows += [_draw_row(where, silent, document, m, "exact") for m in findings.study.draws.sizes]
    return table(_DRAW_HEAD, rows)


def thinking_table(findings: Findings) -> str:
    """The table of draw rules for the model that reasons."""
    rows = []
    for name, document in findings.thinking.items():
        (first,) = document["methods"]
        sizes = findings.study.thinking.sizes if findings.study.thinking else ()
        rows += [_draw_row(name, first["without_signal"], document, m, "others") for m in sizes]
    return table(_DRAW_HEAD, rows)


_DRAW_HEAD = (
    *("where", "no signal", "M", "tokens", "AAW", "uniform", "all"),
    *("minus uniform", "minus nonzero", "unbiased", "shift"),
)


def _draw_row(where: str, silent: float, document: Any, m: int, reference: str) -> list[str]:
    drawn = {rule: draw_of(document, rule, m, reference) for rule in ("aaw", "uniform", "unbiased", "off")}

    def cosine(rule: str) -> str:
        return "-" if drawn[rule] is None else _number(drawn[rule]["cosine"]["value"])

    aaw, everything = drawn["aaw"], drawn["off"]
    bias, share = None, "-"
    if aaw is not None and everything is not None:
        bias = aaw["mean_cosine"]["value"] - everything["mean_cosine"]["value"]
        share = "-" if not everything["tokens"] else f"{aaw['tokens'] / everything['tokens']:.0%}"
    return [
        *(where, f"{silent:.0%}", str(m), share, cosine("aaw"), cosine("uniform"), cosine("off")),
        "-" if aaw is None else f"{estimate_of(aaw['minus_uniform']):z.3f}",
        "-" if aaw is None else f"{estimate_of(aaw['minus_nonzero']):z.3f}",
        *(cosine("unbiased"), _number(bias)),
    ]


def estimate_of(found: Mapping[str, Any]) -> Estimate:
    """A figure of a measurement's document."""
    value = found["value"]
    return Estimate(nan if value is None else value, found["low"], found["high"])


def draws_by_stage(findings: Findings) -> str:
    """What drawing by |advantage| gains over uniform draws, by stage of training and number of draws.

    Games are the clusters: the mean and its Student interval are over games, and p-values are corrected by Holm over
    all rows. Since few games can be led by one, the mean without the game that moves it most stands beside it.
    """
    rows, p_values = [], []
    for stage in STAGES:
        for m in findings.study.draws.sizes:
            gains = {
                game: draw["minus_uniform"]["value"]
                for (game, of_stage), document in findings.drawn.items()
                if of_stage == stage
                and (draw := draw_of(document, "aaw", m, "exact")) is not None
                and draw["minus_uniform"]["value"] is not None
            }
            if len(gains) < 3:
                continue
            values = np.array(list(gains.values()))
            odd = max(gains, key=lambda game: abs(gains[game] - float(np.median(values))))
            rest = np.array([gain for game, gain in gains.items() if game != odd])
            p_values.append(student_p_value(values))
            rows.append([stage, str(m), f"{len(gains)}", f"{student(values):z.3f}", f"{rest.mean():+.3f} ({odd})"])
    for row, corrected in zip(rows, holm(p_values), strict=True):
        row.append(f"{corrected:.2f}")
    return table(["stage", "M", "games", "AAW minus uniform", "without the game that moves it most", "p (Holm)"], rows)


def arms_table(findings: Findings) -> str:
    """Every arm on every game, the one that learnt most first."""
    rows = []
    for game in findings.study.trained:
        for row in arms_on(findings, game):
            own = row.arm == findings.study.plain
            rows.append(
                [
                    *(game, row.arm, str(row.runs), f"{row.rate:g}", f"{row.learning:z.3f}"),
                    "-" if own else f"{row.minus_plain:z.3f}",
                    *(
                        f"{row.last:z.3f}",
                        f"{row.iterations:.0f}",
                        f"{row.tokens / 1e6:.2f}M",
                        f"{row.rollout_share:.0%}",
                    ),
                    duration(row.seconds),
                ]
            )
    head = ["game", "arm", "runs", "rate", "learning", "minus plain", "end", "iterations", "tokens", "rollouts", "time"]
    return table(head, rows)


def predictions_table(findings: Findings) -> str:
    """How well each figure of the instrument orders the arms by their learning."""
    rows = []
    games = list(findings.study.trained)
    found = {(row.figure, row.game): row for row in predictions(findings, _PREDICTORS)}
    for name, title in _COLUMNS.items():
        cells = [found.get((name, game)) for game in games]
        known = [cell.spearman.value for cell in cells if cell is not None]
        mean = f"{sum(known) / len(known):.2f}" if known else "-"
        rows.append(
            [title, *("-" if cell is None else f"{cell.spearman:z.3f}, {cell.arms} arms" for cell in cells), mean]
        )
    return table(["figure", *games, "mean"], rows)


def tuning_table(findings: Findings) -> str:
    """What every arm had at every learning rate, on the same small budget."""
    share = findings.study.tuning_share
    rates = sorted(findings.study.rates)
    rows = [
        [game, arm, *(f"{means[rate]:.3f}" if rate in means else "-" for rate in rates)]
        for (game, arm), means in findings.tuned.items()
    ]
    note = (
        f"One run of {share:.0%} of the tokens for each learning rate, with a seed of its own; the rate whose run had "
        "the highest mean over its evaluations is taken."
    )
    return f"{note}\n\n{table(['game', 'arm', *(f'{rate:g}' for rate in rates)], rows)}"
