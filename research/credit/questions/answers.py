"""What came of the questions: figures over runs, with corrected p-values, as rows for tables, pictures and JSON.

A run of a game is a cluster: its figures are means over batches and stages, and intervals are over runs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from agents.common.intervals import Estimate, student, wilson
from benchmark.score.statistics import holm, student_p_value
from research.credit.findings import Findings
from research.jobs.report import table

COLLAPSED = 0.1
"""The entropy of a policy's valid actions, as a share of the largest, below which it has collapsed."""

Cell = tuple[str, int]  # a game and a run of it


class Answer(NamedTuple):
    """A figure over runs, and what it is less that of its comparison."""

    what: tuple[Any, ...]
    value: Estimate
    bias: float  # the mean cosine of the mean gradient, by products of different batches; NaN where there is none
    difference: Estimate
    p_value: float
    p_holm: float = 1.0

    def to_json(self) -> dict[str, Any]:
        estimates = {name: getattr(self, name).to_json() for name in ("value", "difference")}
        return {**self._asdict(), **estimates, "what": list(self.what)}


def corrected(answers: Sequence[Answer], tested: Callable[[Answer], bool]) -> list[Answer]:
    """The answers with Holm's correction over those that are tests."""
    chosen = [each for each in answers if tested(each)]
    adjusted = dict(zip([each.what for each in chosen], holm([each.p_value for each in chosen]), strict=True))
    return [each._replace(p_holm=adjusted.get(each.what, 1.0)) for each in answers]


def _along(findings: Findings, question: str) -> Iterator[tuple[Cell, Mapping[str, Any]]]:
    """Every row that a question has of the plain runs, with the run that it is of."""
    for name, result in findings.asked.items():
        _, game, run, *_ = name.split("/")
        for stage in result.get("stages", ()):
            for row in stage.get(question, ()):
                yield (game, int(run)), row


def _by_run(rows: Iterator[tuple[Cell, Mapping[str, Any]]], *keys: str) -> dict[tuple[Any, ...], dict[Cell, Any]]:
    """``{what: {run: (cosine, bias)}}``, the means over a run's stages."""
    found: dict[tuple[Any, ...], dict[Cell, list[tuple[float, float]]]] = {}
    for cell, row in rows:
        pair = (row["cosine"]["value"], row["bias"]["value"])
        if pair[0] is not None:
            own = found.setdefault(tuple([row[key] for key in keys]), {}).setdefault(cell, [])
            own.append((pair[0], np.nan if pair[1] is None else pair[1]))
    return {what: {cell: np.mean(pairs, axis=0) for cell, pairs in by_cell.items()} for what, by_cell in found.items()}


def _answer(what: tuple[Any, ...], own: Mapping[Cell, Any], other: Mapping[Cell, Any]) -> Answer:
    less = np.array([own[cell][0] - other[cell][0] for cell in own if cell in other])
    biases = [each[1] for each in own.values() if np.isfinite(each[1])]
    value = student([each[0] for each in own.values()])
    return Answer(what, value, float(np.mean(biases or [np.nan])), student(less), student_p_value(less))


def staleness(findings: Findings) -> list[Answer]:
    """``(lag, weights)``: without weights beside lag 0, with weights beside none at that lag."""
    by_run = _by_run(_along(findings, "staleness"), "lag", "weights")
    answers = [
        _answer((lag, weights), own, by_run[0, "none"] if weights == "none" else by_run[lag, "none"])
        for (lag, weights), own in by_run.items()
        if lag or weights == "none"
    ]
    return corrected(answers, lambda each: each.what[0] > 0)


def drift(findings: Findings) -> dict[int, dict[str, float]]:
    """``{lag: {nats an episode, share of tokens above the cap}}``, means over runs and stages."""
    found: dict[int, list[tuple[float, float]]] = {}
    for _, row in _along(findings, "staleness"):
        if row["weights"] == "none":
            found.setdefault(row["lag"], []).append((row["kl"], row["clipped"]))
    return {lag: dict(zip(("kl", "clipped"), np.mean(own, axis=0).tolist(), strict=True)) for lag, own in found.items()}


def group_sizes(findings: Findings) -> list[Answer]:
    """``(method, size)`` beside groups of 8, or of the smallest size where there are none of 8."""
    by_run = _by_run(_along(findings, "groups"), "method", "size")
    sizes = sorted({size for _, size in by_run})
    usual = 8 if 8 in sizes else min(sizes, default=0)
    answers = [_answer((method, size), own, by_run[method, usual]) for (method, size), own in by_run.items()]
    return corrected(answers, lambda each: each.what[1] != usual)


def silent(findings: Findings) -> dict[int, Estimate]:
    """``{size: the share of groups whose returns are all equal}``, over runs."""
    found: dict[int, dict[Cell, list[float]]] = {}
    for cell, row in _along(findings, "groups"):
        found.setdefault(row["size"], {}).setdefault(cell, []).append(row["silent"])
    return {size: student([float(np.mean(own)) for own in by_run.values()]) for size, by_run in found.items()}


class Split(NamedTuple):
    """The exact gradient's parts at one place of one run, and where its policy stands."""

    game: str
    run: int
    place: str  # a stage of the plain run, or the steps of imitation
    valid: float
    share: float  # |penalty| / (|penalty| + |reward|), at a penalty of 1
    cosine: float


def splits(findings: Findings) -> list[Split]:
    """Every place at which the exact gradient was split."""
    rows = []
    for name, result in findings.asked.items():
        _, game, run, place = name.split("/")
        for each in result.get("stages", [result]):
            if "parts" in each:
                parts = each["parts"]
                share = parts["penalty"] / max(parts["penalty"] + parts["reward"], 1e-300)
                where = each.get("stage", place)
                rows.append(Split(game, int(run), where, each["standing"]["valid"], share, parts["cosine"]))
    return rows


class Short(NamedTuple):
    """A short run under a format penalty."""

    game: str
    run: int
    steps: int
    penalty: float
    collapsed: bool  # before its first success
    succeeded: bool  # ever, in what it played
    valid: float  # at the end, as the next two
    entropy: float
    returns: float
    points: Sequence[Mapping[str, float]]


def shorts(findings: Findings) -> list[Short]:
    """All short runs."""
    rows = []
    for name, result in findings.asked.items():
        _, game, run, place = name.split("/")
        for each in result.get("runs", ()):
            points, success = each["points"], each["success"]
            end = {key: points[-1][key] for key in ("valid", "entropy", "returns")}
            collapsed = any(
                point["entropy"] < COLLAPSED and not any(success[: int(point["iterations"])]) for point in points
            )
            rows.append(
                Short(game, int(run), int(place), each["penalty"], collapsed, any(success), **end, points=points)
            )
    return rows


def penalties(findings: Findings) -> list[Answer]:
    """``(penalty,)``: the expected return at the end beside that with a penalty of 1, both levels averaged."""
    found: dict[tuple[float], dict[Cell, list[float]]] = {}
    for each in shorts(findings):
        found.setdefault((each.penalty,), {}).setdefault((each.game, each.run), []).append(each.returns)
    by_run = {what: {cell: (np.mean(own), np.nan) for cell, own in cells.items()} for what, cells in found.items()}
    answers = [_answer(what, own, by_run.get((1.0,), {})) for what, own in by_run.items()]
    return corrected(answers, lambda each: each.what != (1.0,))


def collapses(findings: Findings) -> dict[float, Estimate]:
    """``{penalty: the share of runs that collapsed before their first success}``, with Wilson's interval."""
    found: dict[float, list[float]] = {}
    for each in shorts(findings):
        found.setdefault(each.penalty, []).append(float(each.collapsed))
    return {penalty: wilson(own) for penalty, own in found.items()}


def answers_data(findings: Findings) -> dict[str, Any]:
    """All answers as plain data, beside what they are computed from."""
    if not findings.asked:
        return {}
    return {
        "answers": {
            "staleness": [each.to_json() for each in staleness(findings)],
            "drift": drift(findings),
            "groups": [each.to_json() for each in group_sizes(findings)],
            "silent": {size: own.to_json() for size, own in silent(findings).items()},
            "splits": [each._asdict() for each in splits(findings)],
            "penalties": [each.to_json() for each in penalties(findings)],
            "collapses": {f"{penalty:g}": own.to_json() for penalty, own in collapses(findings).items()},
        },
        "asked": [
            {**{key: value for key, value in result.items() if key != "facts"}, "job": name}
            for name, result in findings.asked.items()
        ],
    }


def answered(findings: Findings, pictures: Mapping[str, str]) -> list[str]:
    """The report's sections, of the questions that were asked."""
    parts = []
    if stale := staleness(findings):
        apart = drift(findings)
        head = ["lag", "weights", "cosine", "of the mean", "difference", "p (Holm)", "nats", "above cap"]
        rows = [
            [str(lag), weights, *_told(each), f"{apart[lag]['kl']:.3f}", f"{apart[lag]['clipped']:.2%}"]
            for each in stale
            for lag, weights in [each.what]
        ]
        parts += ["## Staleness", _STALENESS, table(head, rows), pictures.get("staleness.svg", "")]
    if sized := group_sizes(findings):
        quiet = silent(findings)
        head = ["method", "group size", "cosine", "of the mean", "difference", "p (Holm)", "groups without signal"]
        rows = [[each.what[0], str(each.what[1]), *_told(each), f"{quiet[each.what[1]]:.2f}"] for each in sized]
        parts += ["## Group size at equal tokens", _GROUPS, table(head, rows), pictures.get("groups.svg", "")]
    if split := splits(findings):
        head = ["game", "run", "where", "valid", "penalty's share", "cosine"]
        rows = [
            [each.game, str(each.run), each.place, f"{each.valid:.3f}", f"{each.share:.3f}", f"{each.cosine:.2f}"]
            for each in split
        ]
        parts += ["## The format penalty's part of the gradient", _PENALTY, table(head, rows)]
        parts += [pictures.get("penalty.svg", "")]
    if runs := shorts(findings):
        head = [
            "penalty",
            "return at the end",
            "less that at 1",
            "p (Holm)",
            "collapsed first",
            "runs",
            "valid at the end",
        ]
        share = collapses(findings)
        rows = [
            [
                *(f"{size:g}", f"{each.value:.3f}", f"{each.difference:.3f}", f"{each.p_holm:.2f}"),
                *(f"{share[size]:.2f}", str(len(own)), f"{np.mean([one.valid for one in own]):.2f}"),
            ]
            for each in penalties(findings)
            for size in each.what
            for own in [[one for one in runs if one.penalty == size]]
        ]
        parts += ["### Training under it", _TRAINING, table(head, rows)]
    return parts


def _told(each: Answer) -> tuple[str, str, str, str]:
    return f"{each.value:.3f}", f"{each.bias:.2f}", f"{each.difference:.3f}", f"{each.p_holm:.2g}"


_STALENESS = (
    "Cosine of a batch's gradient with the exact one of the policy that learns, where a policy some iterations older "
    "played the batch. *Of the mean*: the cosine of the mean gradient. The difference is to lag 0 without weights, and "
    "with weights to none at that lag. *Nats*: KL of an episode's responses from the old policy to the new."
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
