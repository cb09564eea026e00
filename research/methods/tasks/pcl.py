"""PCL: an iteration plays the layouts that a critic takes to be neither easy nor hopeless (arXiv 2510.01135).

Those of ``candidates x groups`` layouts with the smallest ``|V - target|`` are played, V being the critic's value of
the initial prompt, which is regressed on the mean returns of the groups that were played. Our reading: returns are
scaled to [0, 1] by the game's ``return_range``; format penalties below it count as 0. A game without bounds is refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from pydantic import Field

import textgames
from agents import EpisodeTask
from agents.msgrpo import ConfigError, Iteration, configured
from agents.msgrpo.credit import Batch, Floats, Heads, Trajectory, task_of

HEAD = "difficulty"


@configured
class PCL:
    """Plays the candidate layouts whose expected outcome is nearest to even."""

    candidates: int = Field(4, ge=1)
    """Candidate layouts for each group that is played."""
    target: float = Field(0.5, ge=0, le=1)
    """The value, on a scale from the game's lowest return (0) to its highest (1), that is sought."""

    needs: ClassVar[frozenset[str]] = frozenset({"values"})
    asks_alone: ClassVar[bool] = True
    heads: ClassVar[Heads] = {HEAD: "step"}

    def __post_init__(self) -> None:
        self._bounds = dict[str, tuple[float, float]]()  # of the scenarios met so far

    def sample(self, iteration: Iteration, rng: np.random.Generator) -> list[Trajectory]:
        return iteration.play(self.tasks(iteration))

    def tasks(self, iteration: Iteration) -> list[EpisodeTask]:
        """Return the iteration's tasks with the chosen layouts in place of their own; seeds and noise stay."""
        size, tasks = iteration.config.group_size, iteration.tasks()
        parts = [iteration.tasks(part)[::size] for part in range(self.candidates)]
        layouts = {(task.scenario, task.layout_seed): task for part in parts for task in part}
        found = list(layouts.values())
        nearest = np.argsort(np.abs(iteration.prompt_values(found) - self.target), kind="stable")
        chosen = [found[index] for index in nearest[: len(tasks) // size].tolist()]
        return [
            replace(layout, seed=task.seed, noise=task.noise)
            for layout, first in zip(chosen, range(0, len(tasks), size), strict=True)
            for task in tasks[first : first + size]
        ]

    def value_targets(self, batch: Batch) -> Mapping[str, Sequence[Floats]]:
        """Return the critic's targets: at every first step the mean scaled return of its group, else NaN."""
        means: dict[int, float] = {}
        for members in batch.groups.values():
            scaled = []
            for each in [batch.trajectories[index] for index in members]:
                low, high = self.bounds(task_of(each))
                scaled.append(np.clip((each.returned() - low) / (high - low), 0.0, 1.0))
            means |= dict.fromkeys(members, float(np.mean(scaled)))
        targets = []
        for index, each in enumerate(batch.trajectories):
            target = np.full(len(each), np.nan)
            target[0] = means[index]
            targets.append(target)
        return {HEAD: targets}

    def check(self, task: EpisodeTask) -> None:
        self.bounds(task)

    def bounds(self, task: EpisodeTask) -> tuple[float, float]:
        """Return the lowest and the highest return of a task's game.

        Raises:
            ConfigError: the game doesn't tell.
        """
        if task.scenario not in self._bounds:
            known = textgames.parallel_env(task.env_id, **task.kwargs).game.return_range
            if known is None:
                raise ConfigError(
                    f"task_sampling = 'pcl' scales returns by the bounds that a game knows, and {task.scenario} tells "
                    "none (return_range): choose another sampler or another game"
                )
            self._bounds[task.scenario] = known
        return self._bounds[task.scenario]
