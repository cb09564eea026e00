"""The report on the questions: ``Asked -> Markdown, JSON``."""

from collections.abc import Mapping, Sequence
from typing import Any

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
from research.credit.report import how_done, pictured
from research.jobs.report import Facts, said_first, table, whole_report


def report_data(findings: Asked, facts: Facts, notes: Sequence[str] = ()) -> dict[str, Any]:
    """Return the whole report as plain JSON data, all answers beside what they are computed from."""
    told = {"staleness": staleness, "groups": group_sizes, "penalties": penalties}
    data = {
        **{name: [each.to_json() for each in of(findings)] for name, of in told.items()},
        "splits": [each._asdict() for each in splits(findings)],
        "collapses": [{"penalty": size, **own.to_json()} for size, own in collapses(findings).items()],
        "asked": [
            {"job": name, **{key: own for key, own in result.items() if key != "facts"}}
            for name, result in findings.asked.items()
        ],
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
