"""Find the formula that made the advantages of a file, or the mistake that did."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from agents.msgrpo.credit import METHODS, Floats
from research.credit.checker.formula.critic import fitted, perhaps
from research.credit.checker.formula.matching import Given, Match, match, mean_advantage
from research.credit.checker.formula.mistakes import differing, displaced, mistaken
from research.credit.checker.formula.played import TOLERANCE, Played, played
from research.credit.checker.rows import Dump, Row


@dataclass(frozen=True)
class Verdict:
    """The outcome: the formulas that have all advantages, or the nearest one; the fault, or what rows lack."""

    matches: Sequence[Match] = ()
    fault: str = ""
    lacks: str = ""
    rounded: str = ""


def explain(dump: Dump, method: str = "") -> Verdict:
    """Find the formula of a file's advantages, or what they are instead: that is looked for in its richest update.

    Raises:
        ConfigError: there is no method of that name.
    """
    if method:
        METHODS.check(method)
    trained = [row for row in dump.responses if row.trained.any()]
    if not trained:
        return Verdict(lacks="no response is trained")
    valued = not method and dump.has("value")
    if valued and (critic := fitted(played(dump))):
        return Verdict([critic])
    lists = [row for row in trained if isinstance(row.advantage, tuple)]
    if uneven := [row for row in lists if np.ptp(np.asarray(row.advantage)[row.trained]) > TOLERANCE]:
        return _by_token(dump, method, f"{len(uneven):,} of {len(trained):,} responses")
    given = np.array([mean_advantage(row) for row in trained])
    if np.abs(given).max() <= TOLERANCE:
        return _zero(played(dump))
    exact = _explained(dump, method, TOLERANCE)
    if exact.matches or exact.lacks or (rounding := _rounding(given)) is None:
        return exact
    tolerance, name = rounding
    return replace(_explained(dump, method, tolerance), rounded=name)


def _explained(dump: Dump, method: str, tolerance: float) -> Verdict:
    shown = played(dump)._replace(tolerance=tolerance)
    found = list(match(shown, method))
    exact = [one for one in found if one.exact]
    if plain := [one for one in exact if not one.pooled]:
        return Verdict(plain)
    richest = played(dump.richest_update())._replace(tolerance=tolerance)
    if _first_of(richest.excerpt(), method) is None:  # else other updates or groups differ, and not all of them
        for said, other in mistaken(richest):
            if one := _first_of(other, method):
                return Verdict([one], said)
    if exact:  # with rewards at the end alone it is the same as turns that are compared as samples
        return Verdict(exact)
    given = Given.of(shown)
    for one in found:
        if said := displaced(shown, given, one):
            return Verdict([one], said)
    if whole := [one for one in found if one.share == 1]:
        return Verdict(whole[:1])
    nearest = max(found, key=lambda one: one.share, default=None)
    if nearest is None:
        return Verdict(fault="no formula can be computed from these rows")
    said = differing(shown, given, nearest)
    if dump.has("value"):
        return Verdict(fault=f"{said}; they aren't GAE over the rows' values either")
    if not method and perhaps(shown, given, nearest.share):
        said = "not a formula of rewards alone; rows with a critic's `value` are checked, and so is --method NAME"
        return Verdict(lacks=said)
    return Verdict(fault=said)


def _first_of(shown: Played, method: str) -> Match | None:
    return next((one for one in match(shown, method, enough=1) if one.exact and not one.pooled), None)


def _rounding(values: Floats) -> tuple[float, str] | None:
    """Return what rounding may have changed, by the coarsest type that has all values; ``None`` for exact ones."""
    single, size = values.astype(np.float32), float(np.abs(values).max())
    if (single == values).all() and not (single.view(np.uint32) & 0xFFFF).any():
        return 2**-7 * min(1.0, size), "bfloat16"
    for digits in (3, 4, 5):
        if (np.round(values, digits) == values).all() and size > 0.1:
            return 0.51 * 10**-digits, f"{digits} decimals"
    half = values.astype(np.float16)
    return (2**-10 * min(1.0, size), "float16") if (half == values).all() else None


def _zero(shown: Played) -> Verdict:
    """Explain advantages that are all 0."""
    returns = defaultdict[Any, list[float]](list)
    for each in shown.trajectories:
        returns[each.group].append(each.returned())
    differ = sum(np.ptp(own) > TOLERANCE for own in returns.values())
    if differ:
        return Verdict(fault=f"all advantages are 0, and returns differ in {differ} of {len(returns)} groups")
    return Verdict(lacks="all advantages are 0, as returns of each group are equal: formulas aren't told apart")


def _by_token(dump: Dump, method: str, number: str) -> Verdict:
    """Explain advantages that differ between the tokens of one response."""
    said = f"tokens of a response have different advantages, in {number}"
    for how, reduced in (("at some tokens alone", _peak), ("in the mean of a response's tokens", mean_advantage)):
        rows = [row.model_copy(update={"advantage": reduced(row)}) if row.trained.any() else row for row in dump.rows]
        verdict = explain(Dump(rows), method)
        if verdict.matches and not verdict.fault:
            return replace(verdict, fault=f"{said}: those of {verdict.matches[0].said} stand {how}")
    if method:
        return Verdict(fault=f"{said}, and {method} gives all tokens of a response one")
    if dump.has("value"):
        return Verdict(fault=f"{said}, and they aren't GAE over the rows' values")
    return Verdict(lacks=f"{said}: a critic's depend on its values, and rows have no `value`")


def _peak(row: Row) -> float:
    """Return the advantage of the largest size."""
    return float(max(np.asarray(row.each("advantage"))[row.trained], key=abs))
