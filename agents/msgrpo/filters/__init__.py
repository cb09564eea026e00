"""Group filters: which groups are learnt from at all. They run before credit is assigned and before the draw.

A filter is one class with ``keep(batch) -> Kept`` and a name; ``register_filter("name")`` adds one from outside and
``group_filter = "name"`` uses it. Its settings stand in ``[filter.name]``.
"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from agents.msgrpo.credit.batch import Batch, Floats
from agents.msgrpo.plugins import Registry


class Kept(NamedTuple):
    """What a filter leaves of a batch.

    Attributes:
        indices: the trajectories that stay, in ascending order; whole groups.
        scale: what the advantages of each of them are multiplied by, (len(indices),).
    """

    indices: Sequence[int]
    scale: Floats

    @classmethod
    def of_groups(cls, batch: Batch, labels: Sequence[Hashable], scale: float = 1.0) -> "Kept":
        """Keep the groups with these labels."""
        indices = sorted(index for label in labels for index in batch.groups[label])
        return cls(indices, np.full(len(indices), scale))


class GroupFilter(Protocol):
    """A rule of which groups are learnt from."""

    def keep(self, batch: Batch) -> Kept:
        """The trajectories that stay. None at all: the update is skipped."""


class KeepAll:
    """Filters nothing: all groups are learnt from."""

    def keep(self, batch: Batch) -> Kept:
        return Kept(range(len(batch)), np.ones(len(batch)))


FILTERS: Registry[GroupFilter] = Registry(
    "filter",
    {
        "off": "agents.msgrpo.filters:KeepAll",
        "nonzero": "agents.msgrpo.filters.nonzero:Nonzero",
        "starpo_s": "agents.msgrpo.filters.starpo_s:StarPOS",
        "ragen2": "agents.msgrpo.filters.ragen2:RAGEN2",
    },
    setting="group_filter",
)

register_filter = FILTERS.register
