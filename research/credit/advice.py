"""What the figures of a study say one should use: sentences, each with the figures that it rests on."""

import numpy as np

from agents.msgrpo.credit import METHODS
from benchmark.score.statistics import holm
from research.credit.findings import CONTROLS, Findings, arms_on, draw_of, over_cells
from research.credit.tables import estimate_of, fresh_tokens, mean_of

_LEVEL = 0.05


def recommendation(findings: Findings) -> str:
    """What the figures say one should use, each sentence with the figures that it rests on."""
    lines = [*_credit_advice(findings), *_draw_advice(findings), *_training_advice(findings)]
    return "\n".join(f"- {line}" for line in lines) if lines else "Nothing was measured yet."


def _credit_advice(findings: Findings) -> list[str]:
    rows = [row for row in over_cells(findings, "correlation") if row.method not in CONTROLS]
    if not rows:
        return []
    plain = next((row for row in rows if row.method == "msgrpo"), rows[-1])
    named = ", ".join(f"{row.method} {row.mean:.2f}" for row in rows[:4])
    corrected = holm([row.p_value for row in rows])
    above = [row.method for row, p in zip(rows, corrected, strict=True) if p < _LEVEL and row.minus_plain.value > 0]
    lines = [
        f"Credit most like the true advantage: {named}; the plain method has {plain.mean:.2f} "
        f"(means over {plain.cells} games and stages). More like it "
        f"than the plain method, with games as clusters and Holm's correction over {len(rows)} methods: "
        f"{', '.join(above) or 'none'}. The order among the first isn't told apart."
    ]
    free = [row for row in rows if _costs_nothing_more(findings, row.method)]
    if free:
        named = ", ".join(f"{row.method} {row.mean:.2f}" for row in free[:4])
        lines.append(f"Of the methods that neither play fresh rollouts nor learn a critic: {named}.")
    cosines = {row.method: row for row in over_cells(findings, "gradient_cosine")}
    best = [row for row in cosines.values() if row.method not in CONTROLS][:4]
    oracle = cosines.get("oracle")
    if best:
        named = ", ".join(f"{row.method} {row.mean:.3f}" for row in best)
        limit = f"; even the true advantage has {oracle.mean:.3f}" if oracle else ""
        lines.append(f"Gradients of one batch most like the exact one: {named}{limit}.")
    return lines


def _costs_nothing_more(findings: Findings, method: str) -> bool:
    """Whether a method makes do with the episodes that were played, and with what is known of them anyway."""
    if mean_of(findings, method, fresh_tokens) > 0 or method not in METHODS.names:
        return False
    return not METHODS.make(method).needs & {"rollouts", "values"}


def _draw_advice(findings: Findings) -> list[str]:
    lines = []
    if findings.drawn:
        lines.append("Whether draws by |advantage| help depends on the stage and on the game: see the table below.")
    for name, document in findings.thinking.items():
        found = [draw_of(document, "aaw", m, "others") for m in findings.study.draws.sizes]
        parts = [f"{estimate_of(draw['minus_uniform']):z.3f} at M = {draw['m']}" for draw in found if draw is not None]
        lines.append(f"For the model that reasons, on {name}, AAW minus uniform draws: {', '.join(parts)}.")
    return lines


def _training_advice(findings: Findings) -> list[str]:
    lines = []
    for game in findings.study.trained:
        rows = arms_on(findings, game)
        if not rows:
            continue
        others = [row for row in rows if row.arm != findings.study.plain]
        corrected = holm([row.p_value for row in others])
        apart = [row for row, p in zip(others, corrected, strict=True) if p < _LEVEL]
        better = [row.arm for row in apart if row.minus_plain.value > 0]
        worse = [row.arm for row in apart if row.minus_plain.value < 0]
        first = rows[0]
        lines.append(
            f"Trained on {game} at equal tokens, {first.arm} has the highest mean ({first.learning:z.3f}). Told "
            f"apart from the plain method after Holm's correction: better {', '.join(better) or 'none'}; worse "
            f"{', '.join(worse) or 'none'}."
            + (
                " All arms end alike there, so this game tells nothing of them."
                if _all_end_alike(findings, game)
                else ""
            )
        )
    return lines


def _all_end_alike(findings: Findings, game: str) -> bool:
    """Whether the best and the worst arm end closer together than a hundredth of what the arms learnt."""
    rows = arms_on(findings, game)
    starts = [run.returns[0] for row in rows for run in findings.runs[game, row.arm]]
    ends = [row.last.value for row in rows]
    return len(ends) > 1 and max(ends) - min(ends) < 0.01 * abs(float(np.mean(ends)) - float(np.mean(starts)))
