"""The algebra of credit: which values are compared, what is taken off them, and what divides the rest.

A value is an episode's return, or what a step has. Values that are compared with each other form a set: those of a
group's episodes, of its steps at the same time, or of its visits of the same state. A function of one set,
``(n,) -> (n,)``, is called ``how`` here; :func:`compared` is the one that nearly all methods use.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Sized
from functools import partial
from typing import Literal

import numpy as np

from agents.msgrpo.credit.batch import Batch, Floats, What, places_of

How = Callable[[Floats], Floats]

Baseline = Literal["mean", "leave_one_out", "others", "none"]
"""What is taken off a value: the mean of its set; the mean of the set's other values, or of a value that has no others
the value itself (``leave_one_out``) or 0 (``others``); or nothing."""

Scale = Literal["none", "group_std"]
"""What divides the difference: nothing, or the standard deviation of the set, which is within a group."""

SETS: Mapping[str, What] = {
    "group": lambda trajectory, t: None,
    "time": lambda trajectory, t: t,
    "state": lambda trajectory, t: trajectory.states[t],
    "state_and_steps_left": lambda trajectory, t: (trajectory.states[t], trajectory.steps_left[t]),
}
"""Which steps of a group are compared: all, those at the same t, those in the same state, or in the same state with as
many rounds left."""


def compared(
    values: Floats, baseline: Baseline = "mean", scale: Scale = "none", eps: float = 1e-6, ddof: int = 1
) -> Floats:
    """What each of (n,) values is worth beside the others of its set: ``(x - baseline) / scale``.

    Equal values are worth exactly 0 with every baseline but ``"none"``: rounding must not leave an advantage that a
    draw rule would then draw. A value that has no others stays as it is with the baseline ``"others"``, scaled or not.

    Args:
        values: (n,) of one set.
        baseline: see :data:`Baseline`.
        scale: see :data:`Scale`.
        eps: added to the standard deviation.
        ddof: 1 takes the sample standard deviation, 0 that of the population.
    """
    if baseline == "others" and len(values) == 1:
        return values.copy()
    equal = bool((values == values[:1]).all())
    if baseline == "none":
        differences = values.copy()
    elif equal:
        return np.zeros_like(values)
    elif baseline == "mean":
        differences = values - values.mean()
    else:
        differences = values - (values.sum() - values) / (len(values) - 1)
    if scale == "group_std":
        differences /= (0.0 if equal else values.std(ddof=ddof)) + eps
    return differences


standardised = partial(compared, scale="group_std")
"""``z(x) = (x - mean) / (std + eps)`` over one set."""


def within_labels(labels: Iterable[Hashable], values: Floats, how: How) -> Floats:
    """(n,) ``how`` of the values of each set, from (n,) values, those of one set having one label."""
    result = np.empty_like(values)
    for places in places_of(labels).values():
        result[places] = how(values[places])
    return result


def within_groups(batch: Batch, values: Floats, how: How) -> Floats:
    """(N,) ``how`` of the values of each group's episodes, from (N,) values of all."""
    return within_labels([each.group for each in batch.trajectories], values, how)


def labels_of_steps(batch: Batch, among: str | What) -> list[Hashable]:
    """The set of each step of the batch, one trajectory after the other: its group, and one of :data:`SETS` in it."""
    label = SETS[among] if isinstance(among, str) else among
    return [(each.group, label(each, t)) for each in batch.trajectories for t in range(len(each))]


def within_steps(batch: Batch, among: str | What, values: Sequence[Floats], how: How) -> list[Floats]:
    """N arrays (T_i,): ``how`` of the values of each set of steps, from N arrays (T_i,)."""
    return split_like(within_labels(labels_of_steps(batch, among), np.concatenate(values), how), values)


def whitened(advantages: Sequence[Floats]) -> list[Floats]:
    """``z`` over all numbers of the batch together, in the same arrays; 0 where all are equal."""
    return split_like(standardised(np.concatenate(advantages)), advantages) if advantages else []


def split_like(flat: Floats, arrays: Sequence[Sized]) -> list[Floats]:
    """Numbers that stand one after the other, in arrays of the lengths of these."""
    return np.split(flat, np.cumsum([len(each) for each in arrays])[:-1])
