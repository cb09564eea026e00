"""Frozen Lake, solved exactly by finite-horizon value iteration (Bellman's backward induction).

``V_0 = 0`` and ``V_h(s) = max_a sum_s' P(s'|s, a) (r + V_{h-1}(s'))``: the largest expected return that any policy can
collect in the ``h`` steps that are left.
"""

import numpy as np
from numpy.typing import NDArray

from textgames.frozen_lake.game import FrozenLake
from textgames.frozen_lake.rules import ACTIONS, FrozenLakeState, Lake, outcomes
from textgames.yardsticks import Yardstick

UNLIMITED_STEPS_PER_CELL = 8
"""Without a step limit, this many steps per cell are looked ahead: far beyond what a crossing takes."""


class FrozenLakeSolver(Yardstick):
    """The optimal values and actions on the ice of one game of Frozen Lake; maps come with the states."""

    method = "value iteration"

    def __init__(self, game: FrozenLake) -> None:
        self._kernel_key = (game.is_slippery, game.success_rate)

    def values(self, state: FrozenLakeState, steps_left: int | None, player: str) -> dict[str, float]:
        steps = horizon(state, steps_left)
        q = self._tables(state.lake, steps)[steps]
        return {name: float(q[state.position, action]) for action, name in enumerate(ACTIONS)}

    def _tables(self, lake: Lake, horizon: int) -> list[NDArray[np.float64]]:
        """Return ``Q[h]`` of shape (cells, 4) for every ``h`` up to at least ``horizon``; ``V[h]`` is the largest of a
        row.
        """
        if horizon < 0:
            raise ValueError(f"steps_left must not be negative, got {horizon}")
        key = ("value iteration", *self._kernel_key)
        if key not in lake.memo:
            lake.memo[key] = (*_kernel(lake, *self._kernel_key), [np.zeros((len(lake.tiles), 4))])
        probabilities, targets, rewards, tables = lake.memo[key]
        while len(tables) <= horizon:
            tables.append(rewards + (probabilities * tables[-1].max(axis=1)[targets]).sum(axis=2))
        found: list[NDArray[np.float64]] = tables
        return found


def horizon(state: FrozenLakeState, steps_left: int | None) -> int:
    """Return the steps that are looked ahead."""
    return UNLIMITED_STEPS_PER_CELL * len(state.lake.tiles) if steps_left is None else steps_left


def _kernel(
    lake: Lake, is_slippery: bool, success_rate: float
) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.float64]]:
    """Return the kernel as arrays over (cell, action, outcome), and the expected reward over (cell, action)."""
    cells, width = len(lake.tiles), 3 if is_slippery else 1
    probabilities = np.zeros((cells, 4, width))
    targets = np.zeros((cells, 4, width), dtype=np.intp)
    rewards = np.zeros((cells, 4))
    for cell in range(cells):
        for action in range(4):
            # termination needs no case of its own: a terminal cell stays if it is and pays 0, so its value is 0
            for index, (chance, target, reward, _) in enumerate(
                outcomes(lake, cell, action, is_slippery, success_rate)
            ):
                probabilities[cell, action, index] = chance
                targets[cell, action, index] = target
                rewards[cell, action] += chance * reward
    return probabilities, targets, rewards
