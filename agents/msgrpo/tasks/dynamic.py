"""DAPO's dynamic sampling: groups whose returns are all equal teach nothing, and are replaced (arXiv 2503.14476).

An iteration plays on, with other layouts, until it has as many groups as it should have with returns that differ, or
has been refilled ``refills`` times. What was dropped is in the log all the same: its episodes, returns and tokens.
"""

from collections.abc import Hashable
from typing import ClassVar

import numpy as np
from pydantic import Field

from agents.msgrpo.credit.batch import Batch, Trajectory
from agents.msgrpo.filters.spread import spreads
from agents.msgrpo.plugins import configured
from agents.msgrpo.tasks import Iteration


@configured
class DynamicSampling:
    """Drops groups of equal returns and plays others in their place."""

    refills: int = Field(3, ge=0)
    """Times that an iteration may play others; after that it learns from what it has."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def sample(self, iteration: Iteration, rng: np.random.Generator) -> list[Trajectory]:
        first = iteration.play(iteration.tasks())
        wanted, size = len(Batch(first).groups), iteration.config.group_size
        seats = wanted // len({task.layout_seed for task in iteration.tasks()})
        kept = with_signal(first)
        for part in range(1, self.refills + 1):
            missing = -(-(wanted - len(kept)) // seats)  # in groups of episodes, each of which has all seats
            if not missing:
                break
            more = with_signal(iteration.play(iteration.tasks(part)[: missing * size]))
            for label, members in more.items():
                if len(kept) < wanted:
                    kept.setdefault(label, members)
        return [each for members in kept.values() for each in members] or first


def with_signal(trajectories: list[Trajectory]) -> dict[Hashable, list[Trajectory]]:
    """The groups in which returns differ, by their labels."""
    batch = Batch(trajectories)
    return {
        label: [trajectories[index] for index in members]
        for (label, members), spread in zip(batch.groups.items(), spreads(batch), strict=True)
        if spread
    }
