"""Task samplers: which episodes an iteration plays, and whether it plays more."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from pydantic import Field

from agents.episode import EpisodeTask
from agents.msgrpo.credit.batch import Batch, Floats, FreshRollouts, Trajectory
from agents.msgrpo.filters import spreads
from agents.msgrpo.plugins import Method, Registry, configured
from agents.turn import TurnRequest

Hint = Callable[[TurnRequest], str]
"""``request -> a text that is put before its observation``; empty for none."""

Mask = Callable[[TurnRequest], tuple[str, ...]]
"""``request -> the legal actions that its response is held to``; empty for any response."""


class Iteration(Protocol):
    """The part of the iteration that is being played which a sampler may use."""

    @property
    def config(self) -> Any:
        """The run's :class:`~agents.msgrpo.configuration.config.MSGRPOConfig`, which imports this package."""

    @property
    def number(self) -> int:
        """The number of the iteration, from 0."""

    @property
    def rollouts(self) -> FreshRollouts:
        """Plays on from visited states."""

    def tasks(self, part: int = 0) -> list[EpisodeTask]:
        """Return the tasks of ``groups x group_size`` episodes on training layouts; another ``part`` gives others."""

    def play(
        self, tasks: Sequence[EpisodeTask], hint: Hint | None = None, mask: Mask | None = None
    ) -> list[Trajectory]:
        """Play tasks with the current policy, in their order.

        Trajectories have the prompts with the hints, and in ``allowed`` the tokens that a mask left: the update takes
        probabilities among these, as the sampler did.
        """

    def prompt_values(self, tasks: Sequence[EpisodeTask]) -> Floats:
        """Return (n,) the critic's value of the first prompt of each task; for samplers that need ``values``."""


class TaskSampler(Method, Protocol):
    """A rule of which episodes are played."""

    needs: ClassVar[frozenset[str]]

    def sample(self, iteration: Iteration, rng: np.random.Generator) -> list[Trajectory]:
        """Play an iteration. ``rng`` is the sampler's own randomness."""


class Plain:
    """``groups x group_size`` episodes of layouts drawn evenly from the training layouts."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def sample(self, iteration: Iteration, rng: np.random.Generator) -> list[Trajectory]:
        return iteration.play(iteration.tasks())


@configured
class DynamicSampling:
    """Drops groups of equal returns and plays others in their place, as DAPO does (arXiv 2503.14476)."""

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
    """Return the groups in which returns differ, by their labels."""
    batch = Batch(trajectories)
    return {
        label: [trajectories[index] for index in members]
        for (label, members), spread in zip(batch.groups.items(), spreads(batch), strict=True)
        if spread
    }


SAMPLERS: Registry[TaskSampler] = Registry(
    "tasks",
    {"plain": "agents.msgrpo.tasks:Plain", "dynamic": "agents.msgrpo.tasks:DynamicSampling"},
    setting="task_sampling",
)

register_tasks = SAMPLERS.register
