"""Find the formula that made the advantages of a file, a critic's among them, or the mistake that did."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from agents.msgrpo.credit import METHODS, Floats
from research.credit.checker.formulas import (
    TOLERANCE,
    Given,
    Match,
    Played,
    close,
    match,
    mean_advantage,
    played,
    trajectory_of,
)
from research.credit.checker.rows import Dump, Row, most_common, place

MOST_ALIKE, LIKELY = 0.5, 3.0


def fitted(shown: Played) -> Match | None:
    """Return GAE over the rows' values, by turn or by token, if some discount and lambda give all advantages.

    ``A_t = r_t - V_t + gamma V_{t+1} + gamma lambda A_{t+1}`` is linear in the unknown numbers, also if advantages were
    whitened, by a factor and an offset of each update. Nothing follows the end of an episode.
    """
    changes, found = list[tuple[float, float]](), ""
    for indices in shown.by_update():
        table = np.concatenate([_equations(shown, i) for i in indices])
        columns, given = table[:, :-1], table[:, -1]
        solved, _, rank, _ = np.linalg.lstsq(columns, given, rcond=1e-9)
        paid, value, after, carried, _, last = solved
        if len(given) < 2 * columns.shape[1] or not close(given, columns @ solved, 10 * shown.tolerance).all():
            return None
        if max(paid, -value) * np.abs(columns[:, :2]).max() <= 10 * shown.tolerance:
            return None  # neither rewards nor values are in them, or with the opposite sign
        if rank == columns.shape[1]:
            gamma = after / paid
            if abs(paid + value) > 1e-4 * abs(paid) or not (-1e-4 < carried < gamma + 1e-4 and gamma < 1 + 1e-4):
                return None
            found = f" with discount {gamma:.4g} and lambda {max(0.0, carried / gamma):.4g}"
        changes.append((float(-value), float(last)))
    plain = all(abs(factor - 1) < 1e-5 and abs(offset) < 1e-5 for factor, offset in changes)
    return Match(f"GAE over the rows' values{found}", 1.0, [], () if plain else tuple(changes))


def _equations(shown: Played, i: int) -> Floats:
    """Return (places, 7): what is paid, the value, the next value and advantage, 1 if there is a next, 1 if not, A."""
    rows, paid = [], []
    for row, reward in zip(shown.rows[i], shown.trajectories[i].rewards.tolist(), strict=True):
        tokens = isinstance(row.value, tuple)
        own = np.stack([np.asarray(row.each(name))[row.trained] for name in ("value", "advantage")], axis=1)
        own = own if tokens else own[:1]
        rows.append(own)
        paid.append(np.append(np.zeros(max(0, len(own) - 1)), reward)[: len(own)])
    value, given = np.concatenate(rows).T
    there = np.append(np.ones(len(value) - 1), 0.0) if len(value) else value
    after, carried = (np.append(each[1:], 0.0)[: len(value)] for each in (value, given))
    return np.stack([np.concatenate(paid), value, after, carried, there, 1 - there, given], axis=1)


def perhaps(shown: Played, given: Given, nearest: float) -> bool:
    """Return whether advantages may be a critic's: they differ in an episode, rise with what is earned from a turn on,
    and no formula has most of them."""
    if nearest > MOST_ALIKE or all(len(own) < 2 for own in shown.rows):
        return False
    ends = np.cumsum([len(own) for own in shown.rows])[:-1]
    if not any(np.ptp(own) > given.tolerance for own in np.split(given.advantage, ends)):
        return False
    earned = np.concatenate([each.returns_to_go() for each in shown.trajectories])
    turn = np.array(list(itertools.chain.from_iterable(range(len(own)) for own in shown.rows)))
    x, y = (_less_means(each, turn) for each in (given.advantage, earned))
    size = np.sqrt((x @ x) * (y @ y))
    return bool(size > 1e-9 and x @ y / size * np.sqrt(len(x)) > LIKELY)


def _less_means(values: Floats, turn: np.ndarray) -> Floats:
    values = np.nan_to_num(values)
    centred: Floats = values - (np.bincount(turn, values) / np.bincount(turn))[turn]
    return centred


def mistaken(shown: Played) -> Iterator[tuple[str, Played]]:
    """Yield what a trainer may have taken the first episodes for, each with the sentence that says so."""
    sizes, places = Counter(one.group for one in shown.trajectories), range(len(shown.trajectories))
    size = most_common(list(sizes.values()))
    orders = {"n in a row": [i // size for i in places], "every nth": [i % len(sizes) for i in places]}
    for order, others in orders.items():
        said = f"the advantages are those of other groups, {order} of the file's episodes: labels and rows part"
        columns = zip(shown.trajectories, shown.rows, others, strict=True)
        apart = [replace(one, group=(own[0].update, other)) for one, own, other in columns]
        yield said, shown._replace(trajectories=apart).excerpt()
    shown = shown.excerpt()
    each, rows = shown.trajectories, shown.rows
    said = "the advantages are those of returns without the reward {}: it arrives too late"
    answered = [trajectory_of(own, np.array([row.reward for row in own])) for own in rows]
    yield said.format("after the last response"), shown._replace(trajectories=answered)
    cut = [replace(one, rewards=np.append(one.rewards[:-1], 0.0)) for one in each]
    yield said.format("of the last turn"), shown._replace(trajectories=cut)
    ending = [replace(one, rewards=np.append(np.zeros(len(one) - 1), one.rewards[-1])) for one in each]
    yield (
        "the advantages are those of the last turn's reward: what earlier turns were paid is left out",
        shown._replace(trajectories=ending),
    )
    costs = [replace(one, rewards=-one.rewards) for one in each]
    yield (
        "the advantages have the opposite sign: they are those of the negative rewards",
        shown._replace(trajectories=costs),
    )
    samples = [(one, own[t], t) for one, own in zip(each, rows, strict=True) for t in range(len(own))]
    alone = [[row] for _, row, _ in samples]
    said = "each turn was compared as a sample of its own, {}"
    whole = [trajectory_of([row], np.array([one.returned()])) for one, row, _ in samples]
    differ = len({len(own) for own in rows}) > 1
    counted = (
        "so that a longer episode counts more often" if differ else "so that the deviation has each return repeated"
    )
    yield said.format(counted), Played(whole, alone, shown.tolerance)
    turns = [trajectory_of([row], one.rewards[t : t + 1]) for one, row, t in samples]
    own_reward = "by its own reward: what follows a turn isn't credited to it"
    yield said.format(own_reward), Played(turns, alone, shown.tolerance)


def displaced(shown: Played, given: Given, one: Match) -> str:
    """Return the sentence for advantages of a formula that stand at other places; empty if they don't."""
    e, lengths = np.concatenate(one.expected), np.array([len(own) for own in shown.rows])
    begins = np.cumsum(lengths) - lengths
    if close(e, np.zeros_like(e)).all():
        return ""
    first, last = np.zeros(len(e), bool), np.zeros(len(e), bool)
    first[begins] = last[begins + lengths - 1] = True
    at_place = given.close(e)
    if not at_place[~last].all() and given.close(np.where(last, given.advantage, np.roll(e, -1))).all():
        return f"each turn has the advantage that {one.name} assigns to the turn after it"
    if not at_place[~first].all() and given.close(np.where(first, given.advantage, np.roll(e, 1))).all():
        return f"each turn has the advantage that {one.name} assigns to the turn before it"
    if at_place[last].all() and not last.all() and at_place[~last].mean() < 0.5:
        carried = "0" if given.close(np.where(last, given.advantage, 0.0)).all() else "others"
        turns = f"{(~last).sum()} of {len(e)} turns"
        return f"only the last turn of each episode has the advantage of {one.name}; {turns} carry {carried}"
    groups = defaultdict[Any, list[int]](list)
    for i, trajectory in enumerate(shown.trajectories):
        groups[trajectory.group].append(i)
    means = np.array([np.add.reduceat(each, begins) / lengths for each in (given.advantage, e)])  # NaN if not trained
    trained = [[i for i in own if np.isfinite(means[0, i])] for own in groups.values()]
    ordered = [np.sort(means[:, own]) for own in trained if own]
    if ordered and all(close(d, e, given.tolerance).all() for d, e in ordered):
        return f"advantages of {one.name} stand at other episodes of the same group"
    return ""


def differing(shown: Played, given: Given, nearest: Match) -> str:
    """Say where the file differs from the nearest formula."""
    expected = np.concatenate(nearest.expected)
    at = int(np.argmin(given.close(expected)))
    row = [row for own in shown.rows for row in own][at]
    return (
        f"no known formula has these advantages; the nearest, {nearest.name}, has {nearest.share:.0%} of them and "
        f"differs at {place(row)}: {given.advantage[at]:.6g} in the file, {expected[at]:.6g} by the formula"
    )


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
