"""VinePPO: values of the visited states by fresh rollouts from them, in place of a critic (arXiv 2410.01679).

``A_it = r_it + V(s_i,t+1) - V(s_it)`` with ``V(s)`` the mean return of ``rollouts`` fresh episodes from s by the policy
that played; ``V`` is 0 after the last step. Rules are pure here, so an episode is begun again exactly: in the same
state, with as many rounds left (our reading of the paper's contexts), and with noise of its own. A state with so many
rounds left is asked once in an iteration, however often it was visited.

With several players, the rollouts are played by the current policy in all seats, and ``s_i,t+1`` is the state in which
the same player decides next; what is paid in between is in ``r_it``.

With ``expected`` (our extension) what may come of a step takes the place of what came: ``A_it = sum_o p_o (r_o +
V(s_o)) - V(s_it)`` over the outcomes o of the executed action, less the format penalty of an invalid response. It
removes the luck of the transition, and asks for the values of all states that may follow.
"""

from typing import ClassVar

import numpy as np
from pydantic import Field

from agents.msgrpo.credit.batch import Batch, Credit
from agents.msgrpo.credit.fresh import Ahead, Rounds, StateValues
from agents.msgrpo.plugins import configured


@configured
class Vine:
    """Each step's reward and gain in value, the values being means of fresh rollouts."""

    rollouts: int = Field(9, ge=1)
    """Fresh episodes for the value of each state."""
    expected: bool = False
    """Average over all that may come of an action instead of taking what came; for games that tell their outcomes, in
    which one player moves at a time."""

    needs: ClassVar[frozenset[str]] = frozenset({"rollouts"})

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        rounds = Rounds(batch)
        values = StateValues(batch, self.rollouts)
        steps = [(i, t) for i, each in enumerate(batch.trajectories) for t in range(len(each))]
        here = {step: rounds.place(*step) for step in steps}
        ahead = {(i, t): self._ahead(rounds, i, t) for i, t in steps}
        values.ask([*here.values(), *(place for each in ahead.values() for _, _, place in each if place is not None)])
        advantages = [np.zeros(len(each)) for each in batch.trajectories]
        for (i, t), place in here.items():
            advantages[i][t] = values.worth(ahead[i, t]) - values[place]
        return Credit.of(advantages, metrics=values.metrics())

    def _ahead(self, rounds: Rounds, i: int, t: int) -> list[Ahead]:
        return rounds.expected(i, t) if self.expected else [rounds.realised(i, t)]
