"""Batches of a few numbers written down by hand, for tests of methods of credit against their formulas."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from agents.msgrpo.credit import Batch, Trajectory


def trajectory(
    rewards: Sequence[float],
    states: Sequence[Any] = (),
    *,
    group: Hashable = 0,
    tokens: int | Sequence[int] = 2,
    horizon: int | None = None,
    **others: Any,
) -> Trajectory:
    """A trajectory with these rewards; its steps have ``tokens`` response tokens each, or as many as it says.

    States are different ones where none are given, and every step is valid where nothing else is said.
    """
    steps = len(rewards)
    lengths = [tokens] * steps if isinstance(tokens, int) else list(tokens)
    settings: dict[str, Any] = {
        "states": tuple(states) or tuple(object() for _ in range(steps)),
        "actions": ("left",) * steps,
        "valid": np.ones(steps, dtype=np.bool_),
        "steps_left": tuple(None if horizon is None else horizon - t for t in range(steps)),
        "cut_off": np.zeros(steps, dtype=np.bool_),
        "prompt_ids": ((1, 2),) * steps,
        "response_ids": tuple(tuple(range(length)) for length in lengths),
        "rounds": tuple(range(steps)),
    }
    return Trajectory(group=group, rewards=np.array(rewards, dtype=np.float64), **(settings | others))


def batch(*trajectories: Trajectory, **others: Any) -> Batch:
    return Batch(list(trajectories), **others)
