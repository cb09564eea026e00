"""Role-conditioned advantages for self-play: every seat has a running mean of its own (SPIRAL, arXiv 2506.24119).

``A_i = R_i - b`` for all steps of episode i, with the ``b`` of its seat as it was before this episode; then
``b <- 0.95 b + 0.05 R_i``, from 0 at the start, episode by episode in the order in which they were played. As ``b``
doesn't contain the episode's own return, it leaves the gradient unbiased. spiral-rl/spiral, ``train_spiral.py``.

Our reading: a seat is a player of a scenario. The paper drops episodes without advantage; here their draw weight is 0,
so that rules which look at it (``aaw``, ``uniform_nonzero``) don't draw them. The means go into checkpoints.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import Field

from agents.msgrpo import configured
from agents.msgrpo.credit import Batch, ByReturn, Credit


@configured
class RAE(ByReturn):
    """The return less the running mean of its seat's returns."""

    decay: float = Field(0.95, ge=0, lt=1)
    """What stays of a seat's mean when an episode is added to it."""

    def __post_init__(self) -> None:
        self._means: dict[tuple[str, str], float] = {}

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        advantages = np.zeros(len(batch))
        for i, trajectory in enumerate(batch.trajectories):
            mean, value = self._means.get(trajectory.seat, 0.0), trajectory.returned(self.discount)
            advantages[i] = value - mean
            self._means[trajectory.seat] = self.decay * mean + (1 - self.decay) * value
        metrics = {f"baseline_{'_'.join(filter(None, seat))}": mean for seat, mean in self._means.items()}
        return Credit.per_episode(batch, advantages)._replace(metrics=metrics)

    def state_dict(self) -> dict[str, Any]:
        """Return the mean of every seat."""
        return {"means": [(*seat, mean) for seat, mean in self._means.items()]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up the mean of every seat."""
        self._means = {(scenario, player): mean for scenario, player, mean in state["means"]}
