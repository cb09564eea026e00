"""Filters by how much the returns of a group differ: ``std_g``, the sample standard deviation of its returns."""

import numpy as np

from agents.msgrpo.credit.arithmetic import same
from agents.msgrpo.credit.batch import Batch, Floats


def spreads(batch: Batch, values: Floats | None = None) -> Floats:
    """(G,) ``std_g`` of every group, in the order of ``batch.groups``; exactly 0 where all returns are equal.

    ``values`` (N,) stand in for the returns.
    """
    returns = batch.returns() if values is None else values
    found = []
    for indices in batch.groups.values():
        own = returns[indices]
        found.append(0.0 if same(own, own[0]).all() else float(own.std(ddof=1)))
    return np.array(found, dtype=np.float64)


def largest_first(values: Floats) -> list[int]:
    """The places of the values, the largest first and of equals the earlier first."""
    return np.argsort(-values, kind="stable").tolist()  # type: ignore[no-any-return]
