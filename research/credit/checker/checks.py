"""Checks of a trainer's rows against each other: each passes, fails with a sentence, or lacks what it needs."""

from collections.abc import Callable, Iterator

import numpy as np

from research.credit.checker import episodes, tokens
from research.credit.checker.finding import Finding, MissingError, Stated
from research.credit.checker.formula.explain import explain
from research.credit.checker.rows import Dump


def check(dump: Dump, stated: Stated) -> list[Finding]:
    """Return the findings of all checks; a ConfigError if no method has the stated name."""
    findings = []
    for name, function in CHECKS.items():
        try:
            said = list(function(dump, stated))
        except MissingError as missing:
            findings.append(Finding(name, "not checked", str(missing)))
            continue
        more = f" (and {len(said) - 1:,} more like it)" if len(said) > 1 else ""
        findings.append(Finding(name, "failed", said[0] + more) if said else Finding(name, "passed"))
    return [*findings, _formula(dump, stated)]


def _formula(dump: Dump, stated: Stated) -> Finding:
    if any(row.advantage is None for row in dump.responses if row.trained.any()):
        return Finding("formula", "not checked", "responses that are trained have no advantage")
    with np.errstate(all="ignore"):  # numbers that overflow are those of no formula
        verdict = explain(dump, stated.method)
    if verdict.fault or verdict.lacks:
        return Finding("formula", "failed" if verdict.fault else "not checked", verdict.fault or verdict.lacks)
    (first, *others) = verdict.matches
    rounded = f", rounded to {verdict.rounded}" if verdict.rounded else ""
    also = f"; not told apart by these rows: {', '.join(each.name for each in others)}" if others else ""
    return Finding("formula", "passed", first.said + rounded + also)


CHECKS: dict[str, Callable[[Dump, Stated], Iterator[str]]] = {
    "labels": episodes.labels,
    "starts": episodes.starts,
    "repeats": episodes.repeats,
    "mask": tokens.mask,
    "end": tokens.end,
    "rewards": episodes.rewards,
    "loss weights": tokens.weights,
    "sampler": tokens.sampler,
    "first ratios": tokens.ratios,
}
