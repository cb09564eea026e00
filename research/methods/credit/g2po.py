"""G2PO: what a step gains along the graph of the states that a group has visited (arXiv 2606.22995; Nala-YN/G2PO).

Every visited state is a node with the value ``V(s)``, the mean of ``G`` over the group's visits of it. A step leads to
the target ``q_it = r_it + gamma V(s_i,t+1)``, and ::

    A_it = E_i + w (c1_it + c2_it)
    E_i  = R_i less the mean over the group
    c1   = q_it less the mean over all steps of the group that begin in the same state
    c2   = q_it - V(s_it) less the mean over all steps of the group

``w = 1`` and the discount 0.95, as in ``g2po/core_g2po.py``. ``scale = "group_std"`` also divides the three
differences by the sample standard deviation of their sets, as the authors' scripts do, and their function by default
doesn't.

Our reading: the authors' nodes have the mean of ``gamma^(T - t) R``, their terminal ones 10 or 0, and invalid steps a
penalty, which fits games that are won or lost. Here nodes have the mean return-to-go, what is paid on the way is part
of the target, nothing follows the last step of an episode, and penalties are in the rewards already.
"""

from functools import partial
from typing import ClassVar

import numpy as np
from pydantic import Field

from agents.msgrpo import Shared, compared, configured
from agents.msgrpo.credit import Batch, Credit, Scale, averaged, within_groups, within_steps


@configured
class G2PO:
    """The episode's return among its group, plus what the step gains on the graph of visited states."""

    step_weight: float = Field(1.0, ge=0)
    """w, the weight of the step's gains; 0 leaves the episode's part alone."""
    scale: Scale = "none"
    """Divides all three differences: nothing, or the standard deviation of the set."""
    discount: float = Field(0.95, gt=0, le=1)
    """Discount per step of returns-to-go and of the next state's value."""

    needs: ClassVar[frozenset[str]] = frozenset()
    shared: ClassVar[Shared] = {"discount": "discount"}

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        how = partial(compared, scale=self.scale)
        values = within_steps(batch, "state", batch.returns_to_go(self.discount), averaged)
        targets = [
            trajectory.rewards + self.discount * np.append(value[1:], 0.0)
            for trajectory, value in zip(batch.trajectories, values, strict=True)
        ]
        gains = [target - value for target, value in zip(targets, values, strict=True)]
        whole = within_groups(batch, batch.returns(), how)
        among_actions = within_steps(batch, "state", targets, how)
        among_steps = within_steps(batch, "group", gains, how)
        parts = zip(whole, among_actions, among_steps, strict=True)
        return Credit.of([e + self.step_weight * (c1 + c2) for e, c1, c2 in parts])
