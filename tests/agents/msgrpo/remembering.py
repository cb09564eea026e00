"""Methods that remember something from one iteration to the next, for tests of checkpoints."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from agents.msgrpo.credit import Batch, Credit
from agents.msgrpo.tasks import Plain


class Moving:
    """Credits returns less a mean that moves with every batch."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self) -> None:
        self.mean = 0.0

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        returns, before = batch.returns(), self.mean
        self.mean += 0.5 * (float(returns.mean()) - self.mean)
        return Credit.per_episode(batch, returns - before)._replace(metrics={"moving_mean": self.mean})

    def state_dict(self) -> dict[str, Any]:
        return {"mean": self.mean}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.mean = state["mean"]


class Counting(Moving):
    """Credits likewise, and remembers it under another name."""

    def state_dict(self) -> dict[str, Any]:
        return {"counted": self.mean}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.mean = state["counted"]


class Sampler(Plain):
    """Plays the plain tasks and remembers a number."""

    def state_dict(self) -> dict[str, Any]:
        return {"level": 1}


MOVING, COUNTING, SAMPLER = (f"{__name__}:{each.__name__}" for each in (Moving, Counting, Sampler))
