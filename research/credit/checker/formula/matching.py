"""Compare formulas with the advantages of a file, as they are or whitened by batch."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple, Self

import numpy as np

from agents.msgrpo.credit import Bools, Floats
from research.credit.checker.formula.formulas import EPS, assigned, formulas
from research.credit.checker.formula.played import TOLERANCE, Played
from research.credit.checker.rows import Row

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
