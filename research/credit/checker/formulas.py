"""Which formula made the advantages of a file: every registered method of credit, and what went wrong on the way."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, ClassVar, NamedTuple

import numpy as np

from agents.msgrpo import ConfigError, Method, MSGRPOConfig
from agents.msgrpo.credit import METHODS, Batch, Credit, CreditMethod, Floats, StepCredit, Trajectory
from research.credit.checker.rows import Dump, Row, most_common, place

TOLERANCE = 1e-6
"""Relative, and absolute below 1: what an advantage may differ from a formula's."""

BASELINES, SCALES = ("mean", "others", "leave_one_out", "none"), ("none", "group_std", "batch_std", "returns_std")
EPS = (1e-6, 1e-4, 1e-8, 1e-5, 0.0)
NEARLY = 0.999
"""The correlation of advantages from which on other numbers in EPS are tried."""

Maker = Callable[[], CreditMethod]


class Formula(NamedTuple):
    """A method of credit with its settings."""

    name: str
    make: Maker
    with_eps: Callable[[float], CreditMethod] | None = None  # the same with another number added to its deviations
    pooled: bool = False  # whether all steps of a group are compared as one set


Steps = list[list[float]]
"""A mean advantage for each turn of each episode."""


class Played(NamedTuple):
    """The episodes of a file as they are, or as a trainer may have mistaken them, and the rows of their turns."""

    trajectories: Sequence[Trajectory]
    rows: Sequence[Sequence[Row]]

    def by_update(self) -> Iterator[list[int]]:
        updates = [rows[0].update for rows in self.rows]
        for update in sorted(set(updates)):
            yield [i for i, own in enumerate(updates) if own == update]


class Match(NamedTuple):
    """How far a formula has the advantages of a file."""

    name: str
    share: float  # of the turns whose advantage isn't 0 in both
    expected: Steps
    factor: float = 1.0  # by which the file's are larger
    offset: float = 0.0  # added after that
    pooled: bool = False

    @property
    def exact(self) -> bool:
        return (self.share, self.factor, self.offset) == (1.0, 1.0, 0.0)


@dataclass(frozen=True)
class PopulationStd(Method):
    """MS-GRPO's advantages with the standard deviation of a population, NumPy's default, in place of a sample's."""

    eps: float
    needs: ClassVar[frozenset[str]] = frozenset()

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        returns, advantages = batch.returns(), np.zeros(len(batch))
        for members in batch.groups.values():
            own = returns[members]
            advantages[members] = (own - own.mean()) / (own.std() + self.eps) if np.ptp(own) else 0.0
        return Credit.per_episode(batch, advantages)


@dataclass(frozen=True)
class Verdict:
    """The outcome: the formulas that have all advantages, or the nearest one, and the fault if there is one."""

    matches: Sequence[Match]
    fault: str = ""

    @property
    def names(self) -> list[str]:
        return [match.name for match in self.matches]


def played(dump: Dump) -> Played:
    """Return the episodes of a file; what a prompt or observation was paid counts for the response before it."""
    paid: dict[tuple[int, Any], list[tuple[int, float]]] = {}
    for row in dump.rows:
        paid.setdefault((row.update, row.episode), []).append((row.turn, row.reward))
    trajectories = []
    for key, rows in dump.episodes.items():
        turns, rewards = [row.turn for row in rows], np.zeros(len(rows))
        for turn, reward in paid[key]:
            rewards[max(0, int(np.searchsorted(turns, turn, side="right")) - 1)] += reward
        trajectories.append(_trajectory(rows, rewards))
    return Played(trajectories, list(dump.episodes.values()))


def _trajectory(rows: Sequence[Row], rewards: Floats) -> Trajectory:
    states = tuple(row.state for row in rows)
    logprobs = [row.old_logprobs or row.sampler_logprobs for row in rows]
    return Trajectory(
        group=(rows[0].update, rows[0].group),
        rewards=rewards,
        states=states if None not in states else (),
        actions=tuple(str(row.token_ids) for row in rows),
        valid=np.ones(len(rows), dtype=np.bool_),
        steps_left=(None,) * len(rows),
        cut_off=np.array([row.cut_off for row in rows]),
        response_ids=tuple(row.token_ids or tuple(range(row.length)) for row in rows),
        old_logprobs=None if None in logprobs else tuple(np.array(each) for each in logprobs),
        rounds=tuple(row.turn for row in rows),
    )


def registered(names: Iterable[str] = ()) -> Iterator[Formula]:
    """Yield methods with their defaults; a ConfigError if there is none of a name."""
    shared = vars(MSGRPOConfig())
    for name in names or METHODS.names:
        METHODS.check(name)
        yield Formula(name, partial(METHODS.make, name, {}, shared))


def formulas(method: str = "") -> Iterator[Formula]:
    """Yield every method with its defaults, then other choices of a comparison; a given ``method`` alone.

    Raises:
        ConfigError: there is no method of that name.
    """
    yield from registered([method] if method else ())
    if method:
        return
    shared = vars(MSGRPOConfig())
    yield Formula("msgrpo with the population's std", partial(PopulationStd, EPS[0]), PopulationStd)
    for spread, among, baseline, scale in product(("episode", "to_go"), ("group", "time", "state"), BASELINES, SCALES):
        choice = {"spread": spread, "among": among, "baseline": baseline, "scale": scale}

        def with_eps(eps: float, choice: dict[str, str] = choice) -> CreditMethod:
            return METHODS.make("msgrpo", {**choice, "eps": eps}, shared)

        said = ", ".join(f"{name} = {value}" for name, value in choice.items())
        pooled = (spread, among) == ("to_go", "group") and baseline != "none"
        others = None if scale == "none" else with_eps
        yield Formula(f"msgrpo with {said}", partial(with_eps, EPS[0]), others, pooled)


def match(shown: Played, method: str = "", enough: int = 4) -> Iterator[Match]:
    """Yield how far each formula that these rows suffice for has their advantages, until ``enough`` have all."""
    given, exact = _dumped(shown.rows), 0
    for formula in formulas(method):
        expected = assigned(shown, formula.make)
        if expected is None:
            continue
        found = _compare(formula.name, given, expected)
        if formula.with_eps is not None:
            found = found._replace(name=f"{formula.name}, eps = {EPS[0]}")
            for eps in EPS[1:] if not found.exact and _nearly(given, expected) else ():
                other = assigned(shown, partial(formula.with_eps, eps))
                if other is not None and (one := _compare(f"{formula.name}, eps = {eps}", given, other)).exact:
                    found = one
                    break
        exact += found.exact and not formula.pooled
        yield found._replace(pooled=formula.pooled)
        if exact == enough:
            return


def assigned(shown: Played, make: Maker) -> Steps | None:
    """Return what a method assigns, update after update; ``None`` if it needs what the rows don't have."""
    method = make()
    available = {"old_logprobs"} if all(each.old_logprobs is not None for each in shown.trajectories) else set()
    if not method.needs <= available:
        return None
    result: Steps = [[] for _ in shown.rows]
    for number, indices in enumerate(shown.by_update()):
        batch = Batch([shown.trajectories[i] for i in indices], iteration=number)
        try:
            with np.errstate(divide="ignore", invalid="ignore"):
                credit = method.assign(batch, np.random.default_rng(0))
        except (ConfigError, ValueError, LookupError, AttributeError, TypeError):
            return None  # it compares states, or what else is not in the rows
        for i, advantages in zip(indices, credit.advantages, strict=True):
            result[i] = _means(advantages)
    return result if np.isfinite(np.concatenate(result)).all() else None


def _means(advantages: StepCredit) -> list[float]:
    return [float(np.mean(each)) for each in advantages]


def _dumped(rows: Sequence[Sequence[Row]]) -> Steps:
    return [[float(np.mean(row.advantage)) for row in own] for own in rows]  # type: ignore[arg-type]  # checked before


def close(one: Any, other: Any) -> Any:
    """Return where two arrays are equal within the tolerance."""
    return np.abs(np.subtract(one, other)) <= TOLERANCE * np.maximum(1, np.abs(other))


def _nearly(given: Steps, expected: Steps) -> bool:
    d, e = np.concatenate(given), np.concatenate(expected)
    return bool(np.ptp(d) and np.ptp(e) and np.corrcoef(d, e)[0, 1] > NEARLY)


def _compare(name: str, given: Steps, expected: Steps) -> Match:
    d, e = np.concatenate(given), np.concatenate(expected)
    told = ~(close(d, 0.0) & close(e, 0.0))
    if not told.any():
        return Match(name, 1.0, expected)
    share = float(close(d, e)[told].mean())
    if share < 1 and np.ptp(e) > TOLERANCE:  # whitened afterwards, or divided by another number?
        factor, offset = (float(each) for each in np.polyfit(e, d, 1))
        if len(d) > 2 and factor > TOLERANCE and close(d, factor * e + offset).all():
            return Match(name, 1.0, expected, factor, 0.0 if abs(offset) <= TOLERANCE else offset)
    return Match(name, share, expected)


def explain(dump: Dump, method: str = "") -> Verdict:
    """Find the formula of a file's advantages, or what they are instead: that is looked for in its richest update."""
    shown = played(dump)
    found = list(match(shown, method))
    exact = [one for one in found if one.exact]
    if plain := [one for one in exact if not one.pooled]:
        return Verdict(plain)
    for said, other in mistaken(played(dump.richest_update())):
        for one in match(other, method, enough=1):
            if one.exact and not one.pooled:
                return Verdict([one], said)
    if exact:  # with rewards at the end alone it is the same as turns that are compared as samples
        return Verdict(exact)
    for one in found:
        if said := displaced(shown, one):
            return Verdict([one], said)
    if whole := [one for one in found if one.share == 1]:
        return Verdict(whole[:1])
    nearest = max(found, key=lambda one: one.share, default=None)
    return Verdict([], _parts(shown, nearest) if nearest else "no formula can be computed from these rows")


def mistaken(shown: Played) -> Iterator[tuple[str, Played]]:
    """Yield what a trainer may have taken the episodes for, each with the sentence that says so."""
    each, rows = list(shown.trajectories), list(shown.rows)
    labels = [one.group for one in each]
    size, places = most_common([labels.count(label) for label in labels]), range(len(labels))
    orders = {"n in a row": [i // size for i in places], "every nth": [i % len(set(labels)) for i in places]}
    for order, others in orders.items():
        said = f"the advantages are those of other groups, {order} of the file's episodes: labels and rows part"
        apart = [replace(one, group=(rows[i][0].update, others[i])) for i, one in enumerate(each)]
        yield said, Played(apart, rows)
    said = "the advantages are those of returns without the reward {}: it arrives too late"
    answered = [_trajectory(own, np.array([row.reward for row in own])) for own in rows]
    yield said.format("after the last response"), Played(answered, rows)
    cut = [replace(one, rewards=np.append(one.rewards[:-1], 0.0)) for one in each]
    yield said.format("of the last turn"), Played(cut, rows)
    samples = [(one, own[t], t) for one, own in zip(each, rows, strict=True) for t in range(len(own))]
    alone = [[row] for _, row, _ in samples]
    said = "each turn was compared as a sample of its own, {}"
    whole = [_trajectory([row], np.array([one.returned()])) for one, row, _ in samples]
    differ = len({len(own) for own in rows}) > 1
    counted = (
        "so that a longer episode counts more often" if differ else "so that the deviation has each return repeated"
    )
    yield said.format(counted), Played(whole, alone)
    turns = [_trajectory([row], one.rewards[t : t + 1]) for one, row, t in samples]
    yield said.format("by its own reward: what follows a turn isn't credited to it"), Played(turns, alone)


def displaced(shown: Played, one: Match) -> str:
    """Return the sentence for advantages of a formula that stand at other places; empty if they don't."""
    pairs = [(np.array(d), np.array(e)) for d, e in zip(_dumped(shown.rows), one.expected, strict=True)]
    if all(close(e, 0.0).all() for _, e in pairs):
        return ""
    several = [(d, e) for d, e in pairs if len(d) > 1]
    if several and all(close(d[:-1], e[1:]).all() for d, e in several):
        return f"each turn has the advantage that {one.name} assigns to the turn after it"
    if several and all(close(d[1:], e[:-1]).all() for d, e in several):
        return f"each turn has the advantage that {one.name} assigns to the turn before it"
    if several and all(close(d[-1], e[-1]) for d, e in pairs):
        others = np.concatenate([d[:-1] for d, _ in several])
        carried = "0" if close(others, 0.0).all() else "others"
        turns = f"{len(others)} of {sum(len(d) for d, _ in pairs)} turns"
        return f"only the last turn of each episode has the advantage of {one.name}; {turns} carry {carried}"
    groups = defaultdict[Any, list[int]](list)
    for i, trajectory in enumerate(shown.trajectories):
        groups[trajectory.group].append(i)
    means = np.array([(d.mean(), e.mean()) for d, e in pairs])
    if all(close(*np.sort(means[own], axis=0).T).all() for own in groups.values()):
        return f"advantages of {one.name} stand at other episodes of the same group"
    return ""


def _parts(shown: Played, nearest: Match) -> str:
    """Say where the nearest formula and the file part."""
    for own, given, expected in zip(shown.rows, _dumped(shown.rows), nearest.expected, strict=True):
        for row, d, e in zip(own, given, expected, strict=True):
            if not close(d, e):
                return (
                    f"no known formula has these advantages; the nearest, {nearest.name}, has {nearest.share:.0%} of "
                    f"them and parts at {place(row)}: {d:.6g} in the file, {e:.6g} by the formula"
                )
    return ""
