"""What the figures of a study say one should use: sentences, each with the figures that it rests on."""

import numpy as np

from agents.msgrpo.credit import METHODS
from research.credit.findings import Comparison, Findings, arms_on, arms_told_apart, over_cells, told_apart
from research.credit.tables import draw_gains, fresh_tokens, mean_of, thinking_told_apart

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
        plain = rows[str(findings.study.arms[findings.study.plain].get("credit", "msgrpo"))]
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
        rows = arms_on(findings, game)
        if not rows:
            continue
        named = [row for row in rows if apart.get((game, row.arm), 1.0) < _LEVEL]
        better = [row.arm for row in named if row.minus_plain.value > 0]
        worse = [row.arm for row in named if row.minus_plain.value < 0]
        starts = [run.returns[0] for row in rows for run in findings.runs[game, row.arm]]
        ends = [row.last.value for row in rows]
        learnt = abs(float(np.mean(ends)) - float(np.mean(starts)))
        alike = len(ends) > 1 and max(ends) - min(ends) < 0.01 * learnt
        lines.append(
            f"Trained on {game} at equal tokens, told apart from the plain method after Holm's correction over "
            f"{len(apart)} differences: better {', '.join(better) or 'none'}; worse {', '.join(worse) or 'none'}."
            + (" All arms end alike there, so this game tells nothing of them." if alike else "")
        )
    return lines
