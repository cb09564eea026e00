"""Group-relative advantages: one number per episode, however many steps it has.

``A_i = (R_i - mean_g R) / (std_g R + eps)`` (arXiv 2508.10839, section 4; the group-relative advantage of GRPO over
the cumulative rewards of whole episodes).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.msgrpo.credit.arithmetic import other_means
from agents.msgrpo.errors import ConfigError

Floats = npt.NDArray[np.float64]


def group_advantages(
    returns: npt.ArrayLike,
    group_ids: Sequence[Any] | npt.NDArray[Any],
    *,
    baseline: str = "mean",
    scale: str = "group_std",
    eps: float = 1e-6,
) -> Floats:
    """The advantage of every episode over the other episodes of its group.

    Args:
        returns: (N,) one return per episode.
        group_ids: (N,) the group of each episode, in the same order; any hashable labels, in any order.
        baseline: subtracted from a return: ``"mean"`` of its group, ``"leave_one_out"`` the mean of the group's other
            episodes, or ``"none"``.
        scale: divides the difference: ``"group_std"`` (sample standard deviation, n - 1), ``"batch_std"`` (that of all
            differences together) or ``"none"``.
        eps: added to the standard deviation.

    Returns:
        (N,) float64. A group whose returns are all equal gets exactly 0, and so does an episode alone in its group,
        with every baseline but ``"none"``: rounding must not turn "nothing to learn" into a tiny advantage that
        episode sampling would then draw.

    Raises:
        ValueError: shapes that don't fit, no episodes, NaN or infinite returns, unknown options.
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
    if baseline not in ("mean", "leave_one_out", "none"):
        raise ConfigError(f"baseline = {baseline!r} can't be used; accepted: mean, leave_one_out, none")
    if scale not in ("group_std", "batch_std", "none"):
        raise ConfigError(f"scale = {scale!r} can't be used; accepted: group_std, batch_std, none")

    members: dict[Any, list[int]] = {}
    for index, label in enumerate(labels):
        members.setdefault(label, []).append(index)
    advantages = np.zeros_like(values)
    for indices in members.values():
        advantages[indices] = _within_group(values[indices], baseline, scale == "group_std", eps)
    if scale == "batch_std" and len(values) > 1:
        advantages /= np.std(advantages, ddof=1) + eps
    return advantages


def _within_group(returns: Floats, baseline: str, divide: bool, eps: float) -> Floats:
    """The advantages of one group, (n,) from (n,)."""
    equal = bool((returns == returns[0]).all())
    if equal and baseline != "none":
        return np.zeros_like(returns)
    differences = returns.copy()
    if baseline == "mean":
        differences -= returns.mean()
    elif baseline == "leave_one_out":
        differences -= other_means(returns)
    if divide:
        differences /= (0.0 if equal else np.std(returns, ddof=1)) + eps
    return differences
