"""The tables and sentences of a study's report, each from the findings alone."""

from collections.abc import Mapping, Sequence
from itertools import product
from math import nan
from typing import Any, NamedTuple

import numpy as np

from agents.common import Estimate, duration, student_quantile
from agents.msgrpo.credit import METHODS
from benchmark.score import holm
from research.credit.findings import (
    CONTROLS,
    RANKED,
    Cell,
    Comparison,
    Findings,
    arms_on,
    arms_told_apart,
    by_game,
    credit_of,
    draw_of,
    over_cells,
    predictions,
    told_apart,
    value_of,
)
from research.credit.settings import STAGES
from research.jobs.intervals import student_tests
from research.jobs.report import table

_COLUMNS = {
    "correlation": "correlation",
    "sign_agreement": "sign",
    "mean_correlation": "without luck",
    "gradient_cosine": "cosine",
    "bias": "bias",
}


def fidelity_table(findings: Findings) -> str:
    """Return every method's means over games, the one of highest correlation first."""
    by_figure = {name: {row.method: row for row in over_cells(findings, name)} for name in _COLUMNS}
    apart = told_apart(findings)
    rows = []
    for method, first in by_figure["correlation"].items():
        cells = [_compared(by_figure[name].get(method), name, apart.get((name, method))) for name in _COLUMNS]
        seconds = mean_of(findings, method, lambda each, document: each["seconds"])
        fresh = mean_of(findings, method, fresh_tokens)
        rows.append([method, str(first.cells), *cells, f"{fresh:.1f}", f"{1000 * seconds:.0f} ms"])
    return table(["method", "cells", *_COLUMNS.values(), "fresh", "time"], rows)


def _compared(row: Comparison | None, figure: str, p: float | None) -> str:
    if row is None:
        return "-"
    low, high = row.minus_plain.low, row.minus_plain.high
    if figure not in RANKED or low is None or high is None or low == high:
        return f"{row.mean:.3f}"
    return f"{row.mean:.3f} ({row.minus_plain:+.3f}{'' if p is None else f', p {p:.2f}'})"


def ceilings(findings: Findings) -> str:
    """Return how far apart the ceilings of the averaged games lie, and which cells are left out."""
    oracle = {
        cell: value
        for cell, document in findings.measured.items()
        if (value := value_of(document, "oracle", "gradient_cosine")) is not None
    }
    weak = [" ".join(map(str, cell)) for cell in oracle if findings.is_weak(cell)]
    games = by_game({cell: value for cell, value in oracle.items() if not findings.is_weak(cell)})
    if not games:
        return ""
    lowest, highest = min(games, key=lambda game: games[game]), max(games, key=lambda game: games[game])
    left = f" Left out, as even the oracle's gradient is mostly noise there: {', '.join(weak)}." if weak else ""
    return (
        f"Ceilings differ between the games: the oracle's cosine is {games[lowest]:.2f} on {lowest} and "
        f"{games[highest]:.2f} on {highest}.{left}"
    )


def mean_of(findings: Findings, method: str, of: Any) -> float:
    """Return the mean over the cells that aren't weak of ``of(method's entry, document)``."""
    values: list[float] = [
        of(each, document)
        for cell, document in findings.measured.items()
        for each in document["methods"]
        if each["name"] == method and not findings.is_weak(cell)
    ]
    return sum(values) / max(1, len(values))


def fresh_tokens(each: Mapping[str, Any], document: Mapping[str, Any]) -> float:
    """Return the response tokens of fresh rollouts for each response token of a batch."""
    setting = document["setting"]
    played = document["episode_tokens"] * setting["groups"] * setting["group_size"]
    return float(each["extra_tokens"] / played) if played else 0.0


def stages_table(findings: Findings) -> str:
    """Return what the policy of each cell expects and how good credit is there; a star marks weak ceilings."""
    rows = []
    for cell, document in findings.measured.items():
        names = [each["name"] for each in document["methods"] if each["name"] not in CONTROLS]
        found = {name: value_of(document, name, "correlation") for name in names}
        known = {name: value for name, value in found.items() if value is not None}
        best = max(known, key=lambda name: known[name]) if known else "-"
        truth = document["truth"] or {}
        cosines = [_number(value_of(document, name, "gradient_cosine")) for name in ("msgrpo", "oracle")]
        row = [*map(str, cell), str(truth.get("states", "-")), _number(truth.get("expected_return"))]
        row += [_number(known.get("msgrpo")), f"{best} {_number(known.get(best))}"]
        row += [cosines[0], cosines[1] + "*" * findings.is_weak(cell)]
        rows.append(row)
    head = ["game", "run", "stage", "states", "expected return", "msgrpo", "best correlation"]
    return table([*head, "msgrpo cosine", "oracle cosine"], rows)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def draws_table(findings: Findings) -> str:
    """Return AAW beside the other rules, at every game, stage and number of draws."""
    found = {f"{game} {run}, {stage}": document for (game, run, stage), document in findings.drawn.items()}
    return _draws_table(found, findings.study.draw_sizes, "exact")


def thinking_table(findings: Findings) -> str:
    """Return the table of draw rules for the model that reasons."""
    thinking = findings.study.thinking
    return _draws_table(findings.thinking, thinking.sizes if thinking else (), "others")


def _draws_table(found: Mapping[str, Any], sizes: Sequence[int], reference: str) -> str:
    head = ("where", "no signal", "M", "tokens", "AAW", "uniform", "all", "minus uniform", "minus nonzero", "unbiased")
    rows = []
    for where, document in found.items():
        (silent,) = [each["without_signal"] for each in document["methods"] if each["name"] == "msgrpo"]
        for m in sizes:
            drawn = {rule: draw_of(document, rule, m, reference) for rule in ("aaw", "uniform", "unbiased", "off")}
            cosines = {rule: _number(None if own is None else own["cosine"]["value"]) for rule, own in drawn.items()}
            aaw, everything, shift, share = drawn["aaw"], drawn["off"], None, "-"
            if aaw is not None and everything is not None:
                shift = aaw["mean_cosine"]["value"] - everything["mean_cosine"]["value"]
                share = f"{aaw['tokens'] / everything['tokens']:.0%}" if everything["tokens"] else "-"
            minus = [f"{estimate_of(aaw[name]):z.3f}" if aaw else "-" for name in ("minus_uniform", "minus_nonzero")]
            own = (f"{silent:.0%}", str(m), share, cosines["aaw"], cosines["uniform"], cosines["off"])
            rows.append([where, *own, *minus, cosines["unbiased"], _number(shift)])
    return table([*head, "shift"], rows)


def estimate_of(found: Mapping[str, Any]) -> Estimate:
    """Return a figure of a measurement's document."""
    value = found["value"]
    return Estimate(nan if value is None else value, found["low"], found["high"])


class DrawGain(NamedTuple):
    """What drawing by |advantage| gains over uniform draws at one stage and number of draws."""

    stage: str
    m: int
    games: int
    gain: Estimate  # with Student's interval over the games
    rest: float  # the mean without the game that moves it most
    odd: str  # that game
    p_holm: float  # corrected over all stages and numbers of draws


def draw_gains(findings: Findings) -> list[DrawGain]:
    """Return the gains at every stage and number of draws that at least three games were measured at.

    Games are the clusters. One game can lead so few, so the mean without the game that moves it most stands beside it.
    """
    found: dict[tuple[str, int], dict[Cell, float]] = {}
    for stage, m in product(STAGES, findings.study.draw_sizes):
        for cell, document in findings.drawn.items():
            draw = draw_of(document, "aaw", m, "exact") if cell[2] == stage and not findings.is_weak(cell) else None
            if draw is not None and draw["minus_uniform"]["value"] is not None:
                found.setdefault((stage, m), {})[cell] = draw["minus_uniform"]["value"]
    games = {key: own for key, gains in found.items() if len(own := by_game(gains)) >= 3}
    rows = []
    for key, test in student_tests({key: np.array([*own.values()]) for key, own in games.items()}).items():
        gains = games[key]
        middle = float(np.median([*gains.values()]))
        odd = max(gains, key=lambda game: abs(gains[game] - middle))
        rest = float(np.mean([gain for game, gain in gains.items() if game != odd]))
        rows.append(DrawGain(*key, len(gains), test.mean, rest, odd, test.p_holm))
    return rows


def draws_by_stage(findings: Findings) -> str:
    """Return the table of :func:`draw_gains`."""
    rows = [
        [row.stage, str(row.m), str(row.games), f"{row.gain:z.3f}", f"{row.rest:+.3f} ({row.odd})", f"{row.p_holm:.2f}"]
        for row in draw_gains(findings)
    ]
    return table(["stage", "M", "games", "AAW minus uniform", "without the game that moves it most", "p (Holm)"], rows)


def thinking_told_apart(findings: Findings) -> dict[tuple[str, int], tuple[float, float]]:
    """Return ``{(scenario, M): (AAW minus uniform, p)}`` of the model that reasons, corrected by Holm over all of them.

    The p-values are Student's, by the width of the intervals over batches.
    """
    from scipy.special import stdtr

    gains, p_values = {}, {}
    for name, document in findings.thinking.items():
        freedom = document["methods"][0]["batches"] - 1
        for m in findings.study.thinking.sizes if findings.study.thinking else ():
            draw = draw_of(document, "aaw", m, "others")
            if draw is None:
                continue
            value, low, high = estimate_of(draw["minus_uniform"])
            if low is not None and high is not None:
                gains[name, m], half = value, (high - low) / 2
                t = -abs(value) / half * student_quantile(freedom) if half > 0 else 0.0
                p_values[name, m] = 2 * float(stdtr(freedom, t))
    return {key: (gains[key], p) for key, p in holm(p_values).items()}


def arms_table(findings: Findings) -> str:
    """Return every arm on every game, the one that learnt most first."""
    rows, apart = [], arms_told_apart(findings)
    for game in findings.study.trained:
        for row in arms_on(findings, game):
            minus, p = "-", "-"
            if row.arm != findings.study.plain:
                minus, p = f"{row.minus_plain:z.3f}", f"{apart[game, row.arm]:.2f}"
            cells = [game, row.arm, str(row.runs), f"{row.rate:g}", f"{row.learning:z.3f}", minus, p]
            cells += [f"{row.last:z.3f}", f"{row.iterations:.0f}", f"{row.tokens / 1e6:.2f}M"]
            cells += [f"{row.rollout_share:.0%}", duration(row.seconds)]
            rows.append(cells)
    head = ["game", "arm", "runs", "rate", "learning", "minus plain", "p", "end", "iterations", "tokens"]
    return table([*head, "rollouts", "time"], rows)


def predictions_table(findings: Findings) -> str:
    """Return how well each figure of the instrument orders the arms by their learning."""
    rows = []
    games = findings.study.trained
    found = {(row.figure, row.game): row for row in predictions(findings)}
    for name, title in _COLUMNS.items():
        known = {game: found[name, game] for game in games if (name, game) in found}
        told = {game: f"{cell.spearman:z.3f}, {cell.arms} arms" for game, cell in known.items()}
        mean = f"{np.mean([cell.spearman.value for cell in known.values()]):.2f}" if known else "-"
        rows.append([title, *(told.get(game, "-") for game in games), mean])
    return table(["figure", *games, "mean"], rows)


def tuning_table(findings: Findings) -> str:
    """Return what every arm had at every learning rate, on the same small budget."""
    rates = sorted(findings.study.rates)
    rows = [
        [game, arm, *(f"{means[rate]:.3f}" if rate in means else "-" for rate in rates)]
        for (game, arm), means in findings.tuned.items()
    ]
    note = (
        f"One run of {findings.study.tuning_share:.0%} of the tokens for each learning rate, with a seed of its own; "
        "the rate whose run had the highest mean over its evaluations is taken."
    )
    return f"{note}\n\n{table(['game', 'arm', *(f'{rate:g}' for rate in rates)], rows)}"


_LEVEL = 0.05


def recommendation(findings: Findings) -> str:
    """Return what one should use; a method, a draw and an arm are named only if they are told apart."""
    lines = _credit_advice(findings)
    if gains := draw_gains(findings):
        named = [f"{gain.stage} at M = {gain.m} ({gain.gain:+.2f})" for gain in gains if gain.p_holm < _LEVEL]
        lines.append(f"Draws by |advantage| differ from uniform ones over the games: {', '.join(named) or 'nowhere'}.")
    if apart := thinking_told_apart(findings):
        named = [f"{name} at M = {m} ({gain:+.2f})" for (name, m), (gain, p) in apart.items() if p < _LEVEL]
        lines.append(f"Where there is no exact gradient they differ on {', '.join(named) or 'no game'}.")
    lines += _training_advice(findings)
    return "\n".join(f"- {line}" for line in lines) if lines else "Nothing was measured yet."


def _credit_advice(findings: Findings) -> list[str]:
    apart, lines = told_apart(findings), []
    for figure, subject in (("correlation", "Credit"), ("gradient_cosine", "The gradient of a batch")):
        rows = {row.method: row for row in over_cells(findings, figure)}
        if not rows:
            continue
        plain = rows[credit_of(findings.study.arms[findings.study.plain])]
        found = [row for row in rows.values() if apart.get((figure, row.method), 1.0) < _LEVEL]
        better = [_said(findings, row) for row in found if row.minus_plain.value > 0]
        worse = [_said(findings, row) for row in found if row.minus_plain.value < 0]
        truth = "the true advantage" if figure == "correlation" else "the exact one"
        oracle = ""
        if figure == "gradient_cosine" and "oracle" in rows:
            oracle = f", with the true advantage itself {rows['oracle'].mean:.2f}"
        lines.append(
            f"{subject} told apart from the plain method's, whose likeness to {truth} is {plain.mean:.2f}{oracle}: "
            f"more like it {', '.join(better) or 'none'}; less {', '.join(worse) or 'none'} (games as clusters, Holm's "
            f"correction over {len(apart)} differences)."
        )
    return lines


def _said(findings: Findings, row: Comparison) -> str:
    played = mean_of(findings, row.method, fresh_tokens) > 0 or row.method not in METHODS.names
    costs = played or METHODS.make(row.method).needs & {"rollouts", "values", "reward_model"}
    return f"{row.method} ({row.mean:.2f}{'' if costs else ', which costs nothing more'})"


def _training_advice(findings: Findings) -> list[str]:
    lines, apart = [], arms_told_apart(findings)
    for game in findings.study.trained:
        if not (rows := arms_on(findings, game)):
            continue
        named = [row for row in rows if apart.get((game, row.arm), 1.0) < _LEVEL]
        better = [row.arm for row in named if row.minus_plain.value > 0]
        worse = [row.arm for row in named if row.minus_plain.value < 0]
        start = np.mean([run.returns[0] for row in rows for run in findings.runs[game, row.arm]])
        ends = np.array([row.last.value for row in rows])
        alike = len(ends) > 1 and np.ptp(ends) < 0.01 * abs(ends.mean() - start)
        lines.append(
            f"Trained on {game} at equal tokens, told apart from the plain method after Holm's correction over "
            f"{len(apart)} differences: better {', '.join(better) or 'none'}; worse {', '.join(worse) or 'none'}."
            + (" All arms end alike there, so this game tells nothing of them." if alike else "")
        )
    return lines
