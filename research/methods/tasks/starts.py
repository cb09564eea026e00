"""Exploring starts: some groups begin in the middle of a game, if the policy itself may never come.

A group's initial state is replaced by a state that random legal play reaches from it (exploring starts: Sutton and
Barto, "Reinforcement Learning", section 5.3). All episodes of the group begin there, so its returns are compared like
any other group's, and its label is its start. Rules are pure, so beginning in a state is exact.
"""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

import textgames
from agents import EpisodeStart, EpisodeTask
from agents.msgrpo import Iteration, configured
from agents.msgrpo.credit import Trajectory
from textgames import rounds_of_play


@configured
class ExploringStarts:
    """A share of the groups begins in a random state that can be reached, and not at the start."""

    share: float = Field(0.5, ge=0, le=1)
    """The share of an iteration's groups that begin in such a state."""
    walks: int = Field(1, ge=1)
    """Random walks that look for states. The start is drawn evenly from the different states that they visit before
    the game is over: with one walk it is a random place of it, with many walks states that are rarely reached by
    chance are drawn as often as others."""
    walk_length: int = Field(0, ge=0)
    """Most rounds of a walk; 0: as many as an episode may have."""
    count_steps: bool = False
    """Whether the rounds that were walked count as played, towards the limit of steps."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def sample(self, iteration: Iteration, rng: np.random.Generator) -> list[Trajectory]:
        return iteration.play(self.tasks(iteration, rng))

    def tasks(self, iteration: Iteration, rng: np.random.Generator) -> list[EpisodeTask]:
        """Return the iteration's ordinary tasks, some groups of which begin elsewhere; seeds and their order stay."""
        tasks, size = iteration.tasks(), iteration.config.group_size
        groups = len(tasks) // size
        chosen = rng.choice(groups, size=round(self.share * groups), replace=False)
        for group in sorted(chosen.tolist()):
            members = range(group * size, (group + 1) * size)
            start = self.start(tasks[members[0]], rng)
            for index in members:
                tasks[index] = replace(tasks[index], start=start)
        return tasks

    def start(self, task: EpisodeTask, rng: np.random.Generator) -> EpisodeStart | None:
        """Return a random start for the group of a task; ``None`` if no walk leads anywhere but to the game's
        end."""
        env = textgames.parallel_env(task.env_id, **task.kwargs)
        limit = env.rules.max_steps
        longest = self.walk_length or limit or DEFAULT_LENGTH
        if limit is not None:
            longest = min(longest, limit - 1)
        env.reset(seed=task.seed, options={"layout_seed": task.layout_seed})
        initial = env.state()
        found: dict[Any, int] = {}  # {state: the round in which it was first met}
        for walk in range(self.walks + FURTHER_WALKS):
            if walk >= self.walks and found:  # further ones are for walks that were over, or back, at once
                break
            for each in rounds_of_play(env.game, initial, longest, rng):
                if not each.over and each.next_state != initial:
                    found.setdefault(each.next_state, each.played + 1)
        if not found:
            return None
        state, rounds = list(found.items())[int(rng.integers(len(found)))]
        return EpisodeStart(state, rounds if self.count_steps else 0)


DEFAULT_LENGTH = 100
"""Most rounds of a walk in a game without a limit of steps."""

FURTHER_WALKS = 50
"""Walks that are tried when those asked for lead nowhere."""
