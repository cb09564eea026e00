"""Direct advantages of several actions sampled in one state, the step-level method of arXiv 2412.18279.

``Adv_m = Q_m - mean_m Q`` with ``Q_m = r_m + V(s'_m)`` over the samples of the policy in a state: the visits of the
episodes, and the branches of ``task_sampling = "branch"``. The method's own loss is ``surrogate = "direct_apo"``.

Our reading of the parts: the paper trains a critic on Monte-Carlo values, 16 completions a state, before the policy.
Here a state is restarted exactly, so ``V`` is itself the mean of ``rollouts`` fresh episodes: unbiased, and with no
critic in between. As in the paper, all of it is offline where a run has one iteration with many ``update_passes``; with
more iterations the advantages are those of the policy as it then is.
"""

from typing import ClassVar

import numpy as np
from pydantic import Field

from agents.msgrpo.credit.arithmetic import centred
from agents.msgrpo.credit.batch import Batch, Credit
from agents.msgrpo.credit.fresh import Place, Rounds, StateValues
from agents.msgrpo.plugins import configured


@configured
class DirectAPO:
    """What each sampled action is worth, less the mean of all that were sampled in its state."""

    rollouts: int = Field(16, ge=1)
    """Fresh episodes for the value of each state that follows."""

    needs: ClassVar[frozenset[str]] = frozenset({"rollouts"})

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        rounds, values = Rounds(batch), StateValues(batch, self.rollouts)
        steps = [(i, t) for i, each in enumerate(batch.trajectories) for t in range(len(each))]
        ahead = {step: rounds.realised(*step) for step in steps}
        values.ask(then for _, _, then in ahead.values() if then is not None)
        samples: dict[Place, list[tuple[int, int]]] = {}
        for step in steps:
            samples.setdefault(rounds.place(*step), []).append(step)
        advantages = [np.zeros(len(each)) for each in batch.trajectories]
        for alike in samples.values():
            worths = np.array([values.worth([ahead[step]]) for step in alike])
            for (i, t), advantage in zip(alike, centred(worths).tolist(), strict=True):
                advantages[i][t] = advantage
        compared = sum(len(alike) for alike in samples.values() if len(alike) > 1)
        return Credit.of(advantages, metrics=values.metrics() | {"compared_steps": compared / len(steps)})
