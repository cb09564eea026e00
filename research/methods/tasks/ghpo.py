"""GHPO: if all of a group fail, it plays again with a part of the solution in its prompts (arXiv 2507.10628).

Our reading for games: the solution is what the planner does from the group's initial state, which takes it L rounds. At
fraction f the prompts of the first ``ceil(f L)`` rounds name the planner's action in the state that the player is in.
The last rerun replaces the group, and is learnt from with the hinted prompts. Evaluation never sees a hint.
"""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from math import ceil
from typing import ClassVar

import numpy as np
from pydantic import Field

import textgames
from agents import EpisodeTask, PlannerPlayer, TurnRequest, rollout
from agents.msgrpo import ConfigError, Hint, Iteration, configured
from agents.msgrpo.credit import Trajectory, task_of

FRACTIONS = (0.25, 0.5, 0.75)


@configured
class GHPO:
    """Plays groups that fail again, with hints."""

    hint: str = "The best action here is {action}."
    """What a prompt tells above its observation; {action} stands for the planner's action."""
    most_reruns: int = Field(3, ge=0, le=len(FRACTIONS))
    """Reruns of a group that still fails: with 25%, 50% and 75% of the solution."""

    needs: ClassVar[frozenset[str]] = frozenset()
    asks_alone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if "{action}" not in self.hint:
            raise ValueError(f"hint = {self.hint!r} can't be used: it must contain {{action}}")
        self._planner = PlannerPlayer()

    def sample(self, iteration: Iteration, rng: np.random.Generator) -> list[Trajectory]:
        groups = by_label(iteration.play(iteration.tasks()))
        for level, fraction in enumerate(FRACTIONS[: self.most_reruns], 1):
            failed = [members for members in groups.values() if not any(each.success for each in members)]
            if not failed:
                break
            tasks = [task_of(each) for members in failed for each in members]
            again = [replace(task, noise=(*task.noise, level)) for task in tasks]  # the transitions' chances stay
            groups |= by_label(iteration.play(again, self.hint_of(again, fraction)))
        return [each for members in groups.values() for each in members]

    def hint_of(self, tasks: Sequence[EpisodeTask], fraction: float) -> Hint:
        """Return the hints at a fraction of the solution, for episodes of these tasks."""
        firsts = {task.layout_seed: task for task in reversed(tasks)}
        solved = {episode.layout_seed: len(episode.steps) for episode in rollout(self._planner, firsts.values())}
        rounds = {task.seed: ceil(fraction * solved[task.layout_seed]) for task in tasks}

        def hint(request: TurnRequest) -> str:
            seed, played = request.seed[0], request.seed[-2]  # (the episode's, ..., the round, the player's number)
            told = self._planner.choose(request).action if played < rounds[seed] else ""
            return self.hint.format(action=told) if told else ""

        return hint

    def check(self, task: EpisodeTask) -> None:
        game, why = textgames.parallel_env(task.env_id, **task.kwargs).game, ""
        if len(game.players) > 1:
            why = "it has several players"
        elif not game.success_means:
            why = "it counts no episode as a success"
        else:
            try:
                self._planner.check_game(game)
            except ValueError as error:
                why = str(error)
        if why:
            raise ConfigError(f"task_sampling = 'ghpo' can't be used with {task.scenario}: {why}")


def by_label(trajectories: Sequence[Trajectory]) -> dict[Hashable, list[Trajectory]]:
    """Return the trajectories of each group."""
    groups: dict[Hashable, list[Trajectory]] = {}
    for each in trajectories:
        groups.setdefault(each.group, []).append(each)
    return groups
