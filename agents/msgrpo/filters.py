"""Group filters: which groups are learnt from at all. They run before credit is assigned and before the draw."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from agents.msgrpo.credit.arithmetic import same
from agents.msgrpo.credit.batch import Batch, Floats
from agents.msgrpo.plugins import Method, Registry


class Kept(NamedTuple):
    """The whole groups that a filter leaves: ascending ``indices`` of trajectories, and factors of their advantages."""

    indices: Sequence[int]
    scale: Floats

    @classmethod
    def of_groups(cls, batch: Batch, labels: Sequence[Hashable], scale: float = 1.0) -> "Kept":
        indices = sorted(index for label in labels for index in batch.groups[label])
        return cls(indices, np.full(len(indices), scale))


class GroupFilter(Method, Protocol):
    """A rule of which groups are learnt from."""

    def keep(self, batch: Batch) -> Kept:
        """Return the trajectories that stay. None at all: the update is skipped."""


class KeepAll:
    """Filters nothing: all groups are learnt from."""

    def keep(self, batch: Batch) -> Kept:
        return Kept(range(len(batch)), np.ones(len(batch)))


class Nonzero:
    """Keeps the groups whose returns differ: DAPO's filter without its refill (arXiv 2503.14476)."""

    def keep(self, batch: Batch) -> Kept:
        labels = list(batch.groups)
        return Kept.of_groups(batch, [labels[g] for g in np.flatnonzero(spreads(batch)).tolist()])


def spreads(batch: Batch, values: Floats | None = None) -> Floats:
    """Return (G,) sample standard deviations of the groups' returns, or of (N,) values; exactly 0 if all are equal."""
    returns = batch.returns() if values is None else values
    found = []
    for indices in batch.groups.values():
        own = returns[indices]
        found.append(0.0 if same(own, own[0]).all() else float(own.std(ddof=1)))
    return np.array(found, dtype=np.float64)


def share_of_equals(batch: Batch, values: Floats | None = None) -> float:
    """Return the share of groups in which all returns, or (N,) values, are equal; groups of one count if all are."""
    found, several = spreads(batch, values), [len(members) > 1 for members in batch.groups.values()]
    return float(np.mean((found[several] if any(several) else found) == 0))


FILTERS: Registry[GroupFilter] = Registry(
    "filter",
    {"off": "agents.msgrpo.filters:KeepAll", "nonzero": "agents.msgrpo.filters:Nonzero"},
    setting="group_filter",
)

register_filter = FILTERS.register
