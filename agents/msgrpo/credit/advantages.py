"""Group-relative advantages: one number per episode, however many steps it has.

``A_i = (R_i - mean_g R) / (std_g R + eps)`` (arXiv 2508.10839, section 4; the group-relative advantage of GRPO over
the cumulative rewards of whole episodes).
"""

from collections.abc import Hashable, Iterable
from functools import partial
from typing import Any, cast, get_args

import numpy as np
import numpy.typing as npt

from agents.msgrpo.credit.arithmetic import Baseline, Scale, compared, within_labels
from agents.msgrpo.credit.batch import Floats
from agents.msgrpo.errors import ConfigError

SCALES = ("group_std", "batch_std", "returns_std", "none")


def group_advantages(
    returns: npt.ArrayLike,
    group_ids: Iterable[Hashable] | npt.NDArray[Any],
    *,
    baseline: str = "mean",
    scale: str = "group_std",
    eps: float = 1e-6,
) -> Floats:
    """The advantage of every episode over the other episodes of its group.

    Args:
        returns: (N,) one return per episode.
        group_ids: (N,) the group of each episode, in the same order; any hashable labels, in any order.
        baseline: subtracted from a return: ``"mean"`` of its group; ``"leave_one_out"`` or ``"others"``, the mean of
            the group's other episodes, which differ for an episode that is alone in its group: it has 0 with the
            first and keeps its return with the second; or ``"none"``.
        scale: divides the difference: ``"group_std"`` (sample standard deviation, n - 1), ``"batch_std"`` (that of all
            differences together), ``"returns_std"`` (that of all returns together) or ``"none"``.
        eps: added to the standard deviation.

    Returns:
        (N,) float64. A group whose returns are all equal gets exactly 0 with every baseline but ``"none"``, and so
        does an episode alone in its group, but with ``"others"``: rounding must not turn "nothing to learn" into a tiny
        advantage that episode sampling would then draw.

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
    for name, value, accepted in (("baseline", baseline, get_args(Baseline)), ("scale", scale, SCALES)):
        if value not in accepted:
            raise ConfigError(f"{name} = {value!r} can't be used; accepted: {', '.join(accepted)}")

    own: Scale = "group_std" if scale == "group_std" else "none"
    how = partial(compared, baseline=cast(Baseline, baseline), scale=own, eps=eps)
    advantages = within_labels(labels, values, how)
    if scale in ("batch_std", "returns_std") and len(values) > 1:
        advantages /= np.std(values if scale == "returns_std" else advantages, ddof=1) + eps
    return advantages
