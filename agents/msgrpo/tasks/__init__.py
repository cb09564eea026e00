"""Task samplers: which episodes an iteration plays, and whether it plays more.

A sampler is one class with ``sample(iteration, rng) -> trajectories`` and a name; ``register_tasks("name")`` adds one
from outside and ``task_sampling = "name"`` uses it. Its settings stand in ``[tasks.name]``.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from agents.episode import EpisodeTask
from agents.msgrpo.credit.batch import Floats, FreshRollouts, Trajectory
from agents.msgrpo.plugins import Registry, Variant

if TYPE_CHECKING:
    from agents.turn import TurnRequest

Hint = Callable[["TurnRequest"], str]
"""``request -> a text that is put before its observation``; empty for none."""


class Iteration(Protocol):
    """What a sampler may use of the iteration that is being played."""

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
        """The tasks of ``groups x group_size`` episodes on training layouts; another ``part`` gives others."""

    def play(self, tasks: Sequence[EpisodeTask], hint: Hint | None = None) -> list[Trajectory]:
        """Play tasks with the current policy, in their order; every player's part is a trajectory of its own.

        ``hint`` adds to prompts what a player wouldn't see otherwise; the trajectories are those of the hinted prompts.
        """

    def prompt_values(self, tasks: Sequence[EpisodeTask]) -> Floats:
        """(n,) the critic's value of the first prompt of each task; for samplers that need ``values``."""


class TaskSampler(Protocol):
    """A rule of which episodes are played.

    One that plays other games than the run's says which with ``games(the run's) -> games``, and one that has something
    to tell of an iteration has it in ``metrics`` afterwards, by names that nothing else has. One that not every game
    has what it needs for refuses a game with ``check(task)``, by a ``ConfigError``, before the run begins.
    """

    needs: ClassVar[frozenset[str]]

    def sample(self, iteration: Iteration, rng: np.random.Generator) -> list[Trajectory]:
        """Play an iteration. ``rng`` is the sampler's own randomness."""


class Plain:
    """``groups x group_size`` episodes of layouts drawn evenly from the training layouts."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def sample(self, iteration: Iteration, rng: np.random.Generator) -> list[Trajectory]:
        return iteration.play(iteration.tasks())


SAMPLERS: Registry[TaskSampler] = Registry(
    "tasks",
    {
        "plain": "agents.msgrpo.tasks:Plain",
        "starts": "agents.msgrpo.tasks.starts:ExploringStarts",
        "dynamic": "agents.msgrpo.tasks.dynamic:DynamicSampling",
        "pcl": "agents.msgrpo.tasks.pcl:PCL",
        "ghpo": "agents.msgrpo.tasks.ghpo:GHPO",
        "branch": "agents.msgrpo.tasks.branch:Branches",
        "tree": "agents.msgrpo.tasks.tree:Trees",
        "entropy_tree": Variant("tree", {"choose": "entropy", "rounds": 2}),
        "ladder": "agents.msgrpo.tasks.ladder:LadderSampling",
    },
    setting="task_sampling",
)

register_tasks = SAMPLERS.register
