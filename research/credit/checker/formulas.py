"""Formulas of advantages, every registered method and other choices of a comparison, beside those of a file."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from agents.msgrpo import ConfigError, Method, MSGRPOConfig
from agents.msgrpo.credit import METHODS, Batch, Bools, Credit, CreditMethod, Floats, Trajectory
from research.credit.checker.rows import Dump, Row

TOLERANCE = 1e-6
"""Relative, and absolute below 1: what an advantage may differ from a formula's."""

EXCERPT = 300
"""Turns after which no further group is looked at for a mistake."""


class Played(NamedTuple):
    """The episodes of a file as they are, or as a trainer may have mistaken them, and the rows of their turns."""

    trajectories: Sequence[Trajectory]
    rows: Sequence[Sequence[Row]]
    tolerance: float = TOLERANCE

    def by_update(self) -> Iterator[list[int]]:
        updates = [rows[0].update for rows in self.rows]
        for update in sorted(set(updates)):
            yield [i for i, own in enumerate(updates) if own == update]

    def excerpt(self) -> Self:
        """Return the first groups, until they have enough turns to tell formulas apart."""
        turns, kept, enough = Counter[Any](), set[Any](), 0
        for each in self.trajectories:
            turns[each.group] += len(each)
        for group, own in turns.items():
            if enough < EXCERPT:
                kept.add(group)
                enough += own
        places = [i for i, each in enumerate(self.trajectories) if each.group in kept]
        chosen = [self.trajectories[i] for i in places]
        return self._replace(trajectories=chosen, rows=[self.rows[i] for i in places])


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
        trajectories.append(trajectory_of(rows, rewards))
    return Played(trajectories, list(dump.episodes.values()))


def trajectory_of(rows: Sequence[Row], rewards: Floats) -> Trajectory:
    """Return the trajectory of the rows of one episode that was paid ``rewards``, (T,)."""
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
        values=np.array([row.each("value")[0] for row in rows]) if all(row.value is not None for row in rows) else None,
    )


BASELINES, SCALES = ("mean", "others", "leave_one_out", "none"), ("none", "group_std", "batch_std", "returns_std")
EPS = (1e-6, 1e-4, 1e-8, 1e-5, 0.0)

Maker = Callable[[], CreditMethod]


class Formula(NamedTuple):
    """A method of credit with its settings."""

    name: str
    make: Maker
    with_eps: Callable[[float], CreditMethod] | None = None  # the same with another number added to its deviations
    pooled: bool = False  # whether all steps of a group are compared as one set


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


def assigned(shown: Played, make: Maker) -> list[Floats] | None:
    """Return (T,) what a method assigns to each episode, by update; ``None`` if it needs what the rows don't have."""
    method = make()
    told = ("old_logprobs", "values")
    available = {name for name in told if all(getattr(each, name) is not None for each in shown.trajectories)}
    if not method.needs <= available:
        return None
    result = [np.empty(0)] * len(shown.rows)
    for number, indices in enumerate(shown.by_update()):
        batch = Batch([shown.trajectories[i] for i in indices], iteration=number)
        try:
            with np.errstate(all="ignore"):
                credit = method.assign(batch, np.random.default_rng(0))
        except (ConfigError, ValueError, LookupError, AttributeError, TypeError):
            return None  # it compares states, or what else is not in the rows
        for i, advantages in zip(indices, credit.advantages, strict=True):
            own = isinstance(advantages, np.ndarray)
            result[i] = np.asarray(advantages if own else [float(np.mean(each)) for each in advantages])
    return result if np.isfinite(np.concatenate(result)).all() else None


NEARLY = 0.999
"""The correlation of advantages from which on other numbers in EPS are tried."""


class Match(NamedTuple):
    """A formula beside the advantages of a file."""

    name: str
    share: float  # of the turns whose advantage isn't 0 in both
    expected: list[Floats]  # (T,) for each episode
    changes: tuple[tuple[float, float], ...] = ()  # by update, the factor of the file's and what is added after that
    pooled: bool = False

    @property
    def exact(self) -> bool:
        return self.share == 1.0 and not self.changes

    @property
    def said(self) -> str:
        """The name, and how the file's advantages were changed."""
        factors, offsets = zip(*self.changes, strict=True) if self.changes else ((1.0,), (0.0,))
        times = "" if not self.changes else f", times {_span(factors)}"
        return self.name + times + (f", plus {_span(offsets)}" if any(offsets) else "")


def _span(values: tuple[float, ...]) -> str:
    low, high = f"{min(values):.6g}", f"{max(values):.6g}"
    return low if low == high else f"{low} to {high} by update"


class Given(NamedTuple):
    """The advantages of a file's turns in columns; NaN if none of a turn's tokens is trained."""

    advantage: Floats
    length: Floats  # of the tokens that are trained
    updates: list[Bools]  # the turns of each update
    tolerance: float

    @classmethod
    def of(cls, shown: Played) -> Self:
        """Return the columns, and what rounding leaves of large returns that differ little."""
        rows = [row for own in shown.rows for row in own]
        update, returns = np.array([row.update for row in rows]), np.array([t.returned() for t in shown.trajectories])
        chosen = [update == one for one in sorted(set(update.tolist()))]
        spread = float(np.ptp(returns)) or 1.0
        single = min(1e-3, 2**-23 * float(np.abs(returns).max()) / spread)  # float32 is the type of most trainers
        length = np.array([float(row.trained.sum()) for row in rows])
        return cls(np.array([mean_advantage(row) for row in rows]), length, chosen, max(shown.tolerance, single))

    def close(self, expected: Floats) -> Bools:
        return close(self.advantage, expected, self.tolerance)


def mean_advantage(row: Row) -> float:
    """Return the mean advantage of the tokens that are trained; NaN if none is."""
    if not row.trained.any():
        return float("nan")
    if not isinstance(row.advantage, tuple):
        return float(row.advantage or 0.0)
    return float(np.mean(np.asarray(row.advantage)[row.trained]))


def close(given: Floats, expected: Floats, tolerance: float = TOLERANCE) -> Bools:
    """Return where two arrays are equal within the tolerance, which is absolute below 1, or not given."""
    same: Bools = np.abs(given - expected) <= tolerance * np.maximum(1, np.abs(expected))
    return same | np.isnan(given)


def match(shown: Played, method: str = "", enough: int = 4) -> Iterator[Match]:
    """Yield how far each formula that these rows suffice for has their advantages, until ``enough`` have all."""
    given, exact = Given.of(shown), 0
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


def _nearly(given: Given, expected: list[Floats]) -> bool:
    trained = ~np.isnan(given.advantage)
    d, e = given.advantage[trained], np.concatenate(expected)[trained]
    return bool(np.ptp(d) and np.ptp(e) and np.corrcoef(d, e)[0, 1] > NEARLY)


def _compare(name: str, given: Given, expected: list[Floats]) -> Match:
    e = np.concatenate(expected)
    told = ~(given.close(np.zeros_like(e)) & close(e, np.zeros_like(e)))
    share = float(given.close(e)[told].mean()) if told.any() else 1.0
    changes = list[tuple[float, float]]()
    for turns in given.updates if share < 1 else ():
        if (told & turns).any():
            own = given._replace(advantage=given.advantage[turns], length=given.length[turns])
            change = _change(own, e[turns])
            if change is None:
                return Match(name, share, expected)
            changes.append(change)
    return Match(name, 1.0, expected, tuple(changes))


def _change(given: Given, expected: Floats) -> tuple[float, float] | None:
    """Return the factor and the offset that make the advantages of an update of those of a formula.

    Two different values always have both, so that an offset takes a third, or advantages whose mean is 0.
    """
    trained = ~np.isnan(given.advantage)
    d, e, length = given.advantage[trained], expected[trained], given.length[trained]
    if np.ptp(e) <= TOLERANCE:
        return None
    factor = float(d @ e / (e @ e))
    if factor > TOLERANCE and close(d, factor * e, given.tolerance).all():
        return factor, 0.0
    near = 10 * given.tolerance
    if len(np.unique(np.round(d, 5))) < 3 and abs(d.mean()) > near and abs(np.average(d, weights=length)) > near:
        return None
    factor = float((d - d.mean()) @ (e - e.mean()) / ((e - e.mean()) @ (e - e.mean())))
    offset = float(d.mean() - factor * e.mean())
    return (factor, offset) if factor > TOLERANCE and close(d, factor * e + offset, given.tolerance).all() else None
