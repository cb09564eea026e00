"""HGPO: steps are compared with those that share their recent history, the longer the more (arXiv 2602.22817).

For ``k = 1 .. K + 1`` the steps of a group that were reached through the same last k states (the present one included)
form a cluster. In a cluster of at least two, ``a_k = (G_it - mean) / (std + 1e-6)`` with the population's standard
deviation. ``A_it = sum_k w_k a_k`` over those k with ``a_k != 0``, with ``w_k`` proportional to ``(k + 1)^alpha`` and
adding up to 1; 0 if there is none. A step with fewer than k states up to it is in no cluster of that k. With
``base``, the episode's return takes part as k = 0, less the mean of the group's steps and divided by their sample
standard deviation. This is ``recipe/hgpo/core_hgpo.py`` of langfengQ/verl-agent, and so are the defaults.

Our reading: a state is the state of the game. Where prompts hold no history and the game is Markov, longer contexts
only cost samples.
"""

from functools import partial
from typing import ClassVar

import numpy as np
from pydantic import Field

from agents.msgrpo import Shared, compared, configured
from agents.msgrpo.credit import Batch, Credit, Floats, Scale, Trajectory, within_steps


@configured
class HGPO:
    """The return-to-go among steps with the same recent states, averaged over how many states are compared."""

    history: int = Field(2, ge=0)
    """K, the states before the present one that are compared at most."""
    alpha: float = Field(1.0, ge=0)
    """How much more a longer history counts: its weight is (k + 1)^alpha."""
    base: bool = False
    """Whether the episode's own return takes part as well."""
    scale: Scale = "group_std"
    """Divides differences: the standard deviation of the set, or nothing, which is the authors' mean_norm."""
    discount: float = Field(0.95, gt=0, le=1)
    """Discount per step of returns-to-go."""

    needs: ClassVar[frozenset[str]] = frozenset()
    shared: ClassVar[Shared] = {"discount": "discount"}

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        how = partial(compared, scale=self.scale)
        levels: list[tuple[int, list[Floats]]] = []
        if self.base:
            whole = zip(batch.trajectories, batch.returns(), strict=True)
            levels.append((0, within_steps(batch, "group", [np.full(len(each), value) for each, value in whole], how)))
        to_go, among = batch.returns_to_go(self.discount), partial(how, ddof=0)
        levels += [(k, within_steps(batch, partial(_last_states, k), to_go, among)) for k in range(1, self.history + 2)]
        return Credit.of([self._mixed([(k, level[i]) for k, level in levels]) for i in range(len(batch))])

    def _mixed(self, levels: list[tuple[int, Floats]]) -> Floats:
        """Return (T,) the weighted mean of the levels that have something to say, from (T,) of each level."""
        total, weights = np.zeros_like(levels[0][1]), np.zeros_like(levels[0][1])
        for k, values in levels:
            weight = float(k + 1) ** self.alpha
            total += weight * values
            weights += weight * (values != 0)
        return total / np.where(weights > 0, weights, 1.0)


def _last_states(k: int, trajectory: Trajectory, t: int) -> object:
    """Return the last k states up to step t; a step with fewer behind it is in a cluster of its own."""
    return trajectory.states[t + 1 - k : t + 1] if t + 1 >= k else object()
