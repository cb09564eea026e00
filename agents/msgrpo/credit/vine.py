"""VinePPO: values of the visited states by fresh rollouts from them, in place of a critic (arXiv 2410.01679).

``A_it = r_it + V(s_i,t+1) - V(s_it)`` with ``V(s)`` the mean return of ``rollouts`` fresh episodes from s by the policy
that played, with as many rounds left (our reading of the paper's contexts); ``V`` is 0 after the last step. With
several players, ``s_i,t+1`` is the state in which the same player decides next; what is paid in between is in ``r_it``.

With ``expected`` (our extension) what may come of a step takes the place of what came: ``A_it = sum_o p_o (r_o +
V(s_o)) - V(s_it)`` over the outcomes o of the executed action, less the format penalty of an invalid response.

``baseline = "mean"`` compares the actions sampled in a state with each other: ``Q_m - mean_m Q`` with ``Q_m = r_m +
V(s'_m)`` over the visits of a state, which needs no rollouts from the state itself.
"""

from collections import Counter
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from agents.msgrpo.credit.arithmetic import compared, split_like, within_labels
from agents.msgrpo.credit.batch import Batch, Credit
from agents.msgrpo.credit.fresh import Rounds, StateValues
from agents.msgrpo.plugins import configured


@configured
class Vine:
    """Each step's reward and what follows it, less a baseline; values are means of fresh rollouts."""

    rollouts: int = Field(9, ge=1)
    """Fresh episodes for the value of each state."""
    expected: bool = False
    """Average over all that may come of an action instead of taking what came; for games that tell their outcomes, in
    which one player moves at a time."""

    baseline: Literal["value", "mean"] = "value"
    """Subtracted from what a step is worth: the value of its state, for which fresh episodes begin there as well, or
    the mean of what all steps are worth that were taken in that state."""

    needs: ClassVar[frozenset[str]] = frozenset({"rollouts"})

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        rounds, values = Rounds(batch), StateValues(batch, self.rollouts)
        steps = [(i, t) for i, each in enumerate(batch.trajectories) for t in range(len(each))]
        here = [rounds.place(*step) for step in steps]
        ahead = [rounds.expected(*step) if self.expected else [rounds.realised(*step)] for step in steps]
        following = [place for each in ahead for _, _, place in each if place is not None]
        values.ask([*here, *following] if self.baseline == "value" else following)
        worths, metrics = np.array([values.worth(each) for each in ahead]), values.metrics()
        if self.baseline == "value":
            advantages = worths - [values[place] for place in here]
        else:
            advantages = within_labels(here, worths, compared)
            samples = Counter(here)
            metrics["compared_steps"] = sum(samples[place] > 1 for place in here) / len(here)
        return Credit.of(split_like(advantages, batch.trajectories), metrics=metrics)
