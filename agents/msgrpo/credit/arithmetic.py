"""What methods compute over sets of episodes and steps: differences from means, and the same within each set.

A function of one set, ``(n,) -> (n,)``, is called ``how`` here. Sets in which all values are equal give exactly 0:
rounding must not leave an advantage that a draw rule would then draw.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import numpy as np

from agents.msgrpo.credit.batch import Batch, Floats, Step, standardised

How = Callable[[Floats], Floats]

Scale = Literal["none", "std"]
"""Whether differences from a set's mean are divided by the set's sample standard deviation."""


def centred(values: Floats) -> Floats:
    """``x - mean``; exactly 0 where all values of (n,) are equal."""
    if bool((values == values[0]).all()):
        return np.zeros_like(values)
    result: Floats = values - values.mean()
    return result


def relative(scale: Scale) -> How:
    """The function that compares the values of a set: their difference from its mean, divided as ``scale`` says."""
    return standardised if scale == "std" else centred


def other_means(values: Floats) -> Floats:
    """(n,) the mean of all other values, for each of (n,): the leave-one-out baseline; 0 for one that is alone."""
    n = len(values)
    if n == 1:
        return np.zeros_like(values)
    if bool((values == values[0]).all()):
        return values.copy()
    result: Floats = (values.sum() - values) / (n - 1)
    return result


def less_others(values: Floats) -> Floats:
    """``x - mean of the others``, which is ``n / (n - 1)`` times the difference from the mean of all."""
    return values - other_means(values)


def within_groups(batch: Batch, values: Floats, how: How) -> Floats:
    """(N,) ``how`` of the values of each group's episodes, from (N,) values of all."""
    result = np.empty_like(values)
    for members in batch.groups.values():
        result[members] = how(values[members])
    return result


def within(sets: Iterable[Sequence[Step]], values: Sequence[Floats], how: How) -> list[Floats]:
    """N arrays (T_i,): ``how`` of the values of each set of steps, from N arrays (T_i,); 0 for steps in no set."""
    result = [np.zeros_like(each) for each in values]
    for steps in sets:
        changed = how(np.array([values[i][t] for i, t in steps]))
        for (i, t), value in zip(steps, changed.tolist(), strict=True):
            result[i][t] = value
    return result


def whitened(advantages: Sequence[Floats]) -> list[Floats]:
    """``z`` over all numbers of the batch together, in the same arrays; 0 where all are equal."""
    if not advantages:
        return []
    flat = standardised(np.concatenate(advantages))
    return np.split(flat, np.cumsum([len(each) for each in advantages])[:-1])


def steps_of_groups(batch: Batch) -> list[list[Step]]:
    """All steps of each group's episodes, a set for each group."""
    return list(batch.visits(lambda trajectory, t: None).values())


def steps_by_time(batch: Batch) -> list[list[Step]]:
    """The steps that a group's episodes take at the same t: as many as there are episodes that go on for so long."""
    return list(batch.visits(lambda trajectory, t: t).values())
