"""SALT: steps that many episodes of a group share are neutral, those that tell them apart decide (arXiv 2510.20022).

The steps of a group are the edges ``(s, a, s')`` of a graph. Every edge begins with its episode's advantage, that of
GRPO, and equal edges get the mean of theirs (as arXiv 2609.28963, appendix A.3, states the method, which it is compared
with there):

``A_it`` = the mean of ``z_g(R_j)`` over the episodes j of the group that go through the edge of step t of episode i.

So an edge that all episodes share gets the mean of all, which is 0, and one that only this episode goes through gets
this episode's ``z_g(R_i)``, which is MS-GRPO's.

Our reading: an episode that goes through an edge twice counts once. A response that names no legal action is an edge of
its own, apart from the action that was taken for it. A trajectory doesn't have the state after its last step; the ends
of episodes are told apart by what the last step was paid and by whether the rules ended the episode.
"""

from collections.abc import Hashable

import numpy as np

from agents.msgrpo import configured
from agents.msgrpo.credit import Batch, ByReturn, Credit, Trajectory, standardised, within_groups


@configured
class SALT(ByReturn):
    """The mean normalised return of all episodes of the group that took the same step."""

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        whole = within_groups(batch, batch.returns(self.discount), standardised)
        advantages = [np.empty(len(trajectory)) for trajectory in batch.trajectories]
        for steps in batch.visits(_edge).values():
            episodes = sorted({i for i, _ in steps})
            shared = whole[episodes].mean()
            for i, t in steps:
                advantages[i][t] = shared
        return Credit.of(advantages)


def _edge(trajectory: Trajectory, t: int) -> Hashable:
    action = trajectory.actions[t] if trajectory.valid[t] else None
    if t + 1 < len(trajectory):
        return trajectory.states[t], action, trajectory.states[t + 1]
    return trajectory.states[t], action, trajectory.terminated, float(trajectory.rewards[t])
