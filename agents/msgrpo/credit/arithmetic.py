"""The algebra of credit: which values are compared, what is subtracted, and what divides the rest.

A value is an episode's return, or a step's. Values that are compared with each other form a set: those of a group's
episodes, of its steps at the same time, or of its visits of the same state. A function of one set, ``(n,) -> (n,)``, is
called ``how`` here.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Sized
from functools import partial
from typing import Any, Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from agents.msgrpo.credit.batch import Batch, Floats, What, places_of
from agents.msgrpo.errors import ConfigError

How = Callable[[Floats], Floats]

Baseline = Literal["mean", "leave_one_out", "others", "none"]
"""The baseline of a value: the mean of its set; the mean of the set's other values, or of a value that has no others
the value itself (``leave_one_out``) or 0 (``others``); or nothing."""

Scale = Literal["none", "group_std"]
"""The divisor of the difference: nothing, or the standard deviation of the set, which is within a group."""

SCALES = ("group_std", "batch_std", "returns_std", "none")
"""The scales of :func:`group_advantages`, which knows all groups."""

SETS: Mapping[str, What] = {
    "group": lambda trajectory, t: None,
    "time": lambda trajectory, t: t,
    "state": lambda trajectory, t: trajectory.states[t],
    "state_and_steps_left": lambda trajectory, t: (trajectory.states[t], trajectory.steps_left[t]),
}
"""Which steps of a group are compared: all, or those at the same t, in the same state, or with as many rounds left."""


def same(values: Floats, others: Floats | float) -> npt.NDArray[np.bool_]:
    """Return which values equal those others, place by place, up to a billionth, or that part of a value above 1.

    Sums of the same fractions in another order differ in their last bits and are still the same return.
    """
    near: npt.NDArray[np.bool_] = np.abs(values - others) <= 1e-9 * np.maximum(1.0, np.abs(others))
    return near


def compared(
    values: Floats, baseline: Baseline = "mean", scale: Scale = "none", eps: float = 1e-6, ddof: int = 1
) -> Floats:
    """Return the worth of each of (n,) values beside the others of its set: ``(x - baseline) / (scale + eps)``.

    A value that equals its baseline, by :func:`same`, is worth exactly 0: rounding must not leave an advantage that a
    draw rule would then draw. A value that has no others stays as it is with the baseline ``"others"``, scaled or not.
    """
    if baseline == "others" and len(values) == 1:
        return values.copy()
    equal = bool(same(values, values[:1]).all())
    if baseline == "none":
        differences = values.copy()
    elif equal:
        return np.zeros_like(values)
    else:
        means = values.mean() if baseline == "mean" else (values.sum() - values) / (len(values) - 1)
        differences = np.where(same(values, means), 0.0, values - means)
    if scale == "group_std":
        differences /= (0.0 if equal else values.std(ddof=ddof)) + eps
    return differences


standardised = partial(compared, scale="group_std")
"""``z(x) = (x - mean) / (std + eps)`` over one set."""


def averaged(values: Floats) -> Floats:
    """Return the mean of one set for each of its values; equal values stay as they are, to the last bit."""
    return values - compared(values)


def within_labels(labels: Iterable[Hashable], values: Floats, how: How) -> Floats:
    """Return (n,) ``how`` of the values of each set, from (n,) values, those of one set having one label."""
    result = np.empty_like(values)
    for places in places_of(labels).values():
        result[places] = how(values[places])
    return result


def within_groups(batch: Batch, values: Floats, how: How) -> Floats:
    """Return (N,) ``how`` of the values of each group's episodes, from (N,) values of all."""
    return within_labels([each.group for each in batch.trajectories], values, how)


def labels_of_steps(batch: Batch, among: str | What) -> list[Hashable]:
    """Return the set of each step of the batch, one trajectory after the other: its group, and one of :data:`SETS`."""
    label = SETS[among] if isinstance(among, str) else among
    return [(each.group, label(each, t)) for each in batch.trajectories for t in range(len(each))]


def within_steps(batch: Batch, among: str | What, values: Sequence[Floats], how: How) -> list[Floats]:
    """Return N arrays (T_i,): ``how`` of the values of each set of steps, from N arrays (T_i,)."""
    return split_like(within_labels(labels_of_steps(batch, among), np.concatenate(values), how), values)


def whitened(advantages: Sequence[Floats]) -> list[Floats]:
    """Return ``z`` over all numbers of the batch together, in the same arrays; 0 if all are equal."""
    return split_like(standardised(np.concatenate(advantages)), advantages) if advantages else []


def split_like(flat: Floats, arrays: Sequence[Sized]) -> list[Floats]:
    """Split numbers that stand one after the other into arrays of the lengths of these."""
    return np.split(flat, np.cumsum([len(each) for each in arrays])[:-1])


def group_advantages(
    returns: npt.ArrayLike,
    group_ids: Iterable[Hashable] | npt.NDArray[Any],
    *,
    baseline: str = "mean",
    scale: str = "group_std",
    eps: float = 1e-6,
) -> Floats:
    """Return (N,) ``A_i = (R_i - mean_g R) / (std_g R + eps)``, one for each episode (arXiv 2508.10839, section 4).

    Args:
        returns: (N,) one return per episode.
        group_ids: (N,) the group of each episode, in the same order; any hashable labels, in any order.
        baseline: subtracted from a return: one of :data:`Baseline`, by groups.
        scale: divides the difference: ``"group_std"`` (sample standard deviation, n - 1), ``"batch_std"`` (that of all
            differences together), ``"returns_std"`` (that of all returns together) or ``"none"``.
        eps: added to the standard deviation.

    A group whose returns are all equal, by :func:`same`, gets exactly 0 with every baseline but ``"none"``. A
    ValueError refuses shapes that don't fit, no episodes, NaN or infinite returns, and unknown options.
    """
    values = np.asarray(returns, dtype=np.float64)
    labels = list(group_ids)
    if values.ndim != 1 or len(labels) != len(values) or not len(values):
        raise ValueError(
            f"need one group id per return: got returns of shape {values.shape} and {len(labels)} group ids"
        )
    if not np.isfinite(values).all():
        bad = np.flatnonzero(~np.isfinite(values))
        raise ValueError(f"returns must be finite, but those of episodes {bad.tolist()} are {values[bad].tolist()}")
    if not eps >= 0:
        raise ValueError(f"eps must be at least 0, got {eps!r}")
    for name, value, accepted in (("baseline", baseline, get_args(Baseline)), ("scale", scale, SCALES)):
        if value not in accepted:
            raise ConfigError(f"{name} must be one of {', '.join(accepted)}, got {value!r}")

    own: Scale = "group_std" if scale == "group_std" else "none"
    how = partial(compared, baseline=cast(Baseline, baseline), scale=own, eps=eps)
    advantages = within_labels(labels, values, how)
    if scale in ("batch_std", "returns_std") and len(values) > 1:
        advantages /= np.std(values if scale == "returns_std" else advantages, ddof=1) + eps
    return advantages
