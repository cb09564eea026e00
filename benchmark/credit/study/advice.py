"""What the figures of a study say one should use: sentences, each with the figures that it rests on."""

import numpy as np

from agents.msgrpo.credit import METHODS
from benchmark.credit.study.findings import CONTROLS, Findings, arms_on, draw_of, over_cells
from benchmark.credit.study.tables import estimate_of, fresh_tokens, mean_of
from benchmark.reproduce.report import figure


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
    lines = [
        f"Credit most like the true advantage: {named}; the plain method has {plain.mean:.2f} "
        f"(means over {plain.cells} games and stages)."
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
    for m in (findings.study.draws.sizes[:1], findings.study.draws.sizes[-1:]):
        found = [draw_of(document, "aaw", m[0], "exact") for document in findings.drawn.values()] if m else []
        known = [draw for draw in found if draw is not None]
        if known:
            mean = sum(draw["minus_uniform"]["value"] or 0.0 for draw in known) / len(known)
            lines.append(
                f"With {m[0]} episodes drawn, AAW's update is nearer to the exact gradient than uniform draws by "
                f"{mean:+.3f} in the cosine, on average over {len(known)} games and stages."
            )
    for name, document in findings.thinking.items():
        found = [draw_of(document, "aaw", m, "others") for m in findings.study.draws.sizes]
        parts = [
            f"{figure(estimate_of(draw['minus_uniform']))} at M = {draw['m']}" for draw in found if draw is not None
        ]
        lines.append(f"For the model that reasons, on {name}, AAW minus uniform draws: {', '.join(parts)}.")
    return lines


def _training_advice(findings: Findings) -> list[str]:
    lines = []
    for game in findings.study.trained:
        rows = arms_on(findings, game)
        if not rows:
            continue
        better = [row.arm for row in rows if row.minus_plain.low is not None and row.minus_plain.low > 0]
        worse = [row.arm for row in rows if row.minus_plain.high is not None and row.minus_plain.high < 0]
        first = rows[0]
        lines.append(
            f"Trained on {game} at equal tokens, {first.arm} learnt most ({figure(first.learning)}). Better than the "
            f"plain method beyond chance: {', '.join(better) or 'none'}; worse: {', '.join(worse) or 'none'}."
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
    ends = [row.last.value for row in rows if row.last.value is not None]
    return len(ends) > 1 and max(ends) - min(ends) < 0.01 * abs(float(np.mean(ends)) - float(np.mean(starts)))
