"""T-PPO's rollouts: an episode is cut after a window of rounds, and a later iteration continues it (arXiv 2506.15050).

An iteration plays ``groups x group_size`` segments. An episode that isn't over keeps its place in the batch, and its
next segment begins exactly in the state that it has reached, with as many rounds left, played by the newest weights. So
every step is played once and trained once, and no iteration waits for long episodes. With ``credit = "tppo"`` the value
behind a cut is that before it, in place of rewards that are still to come.

Our reading: the paper cuts one long response after a number of tokens; here an episode is cut between its rounds. A
continued segment is a group of its own, unless another one begins in the same state. The log's ``return`` is that of a
segment; ``whole_return`` and ``whole_success`` are those of the episodes that ended. Unfinished episodes aren't in a
checkpoint: a resumed run begins others in their places.
"""

from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np
from pydantic import Field

import textgames
from agents import EpisodeStart, EpisodeTask
from agents.msgrpo import ConfigError, Iteration, configured
from agents.msgrpo.credit import Trajectory, refuse_history, task_of


class Unfinished(NamedTuple):
    """An episode that a later iteration continues: its latest segment, and what it was paid so far."""

    segment: Trajectory
    paid: float


@configured
class TruncatedRollouts:
    """Plays episodes a window at a time, and continues them in later iterations."""

    window: int = Field(4, ge=1)
    """Most rounds of an episode in one iteration."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        self.metrics: dict[str, float] = {}
        self._unfinished: dict[int, Unfinished] = {}  # by their place in the batch

    def sample(self, iteration: Iteration, rng: np.random.Generator) -> list[Trajectory]:
        refuse_history(iteration.rollouts.policy)
        segments = iteration.play(self.tasks(iteration))
        ended = []
        for place, segment in enumerate(segments):
            before = self._unfinished.pop(place, None)
            paid = segment.returned() + (before.paid if before else 0.0)
            if segment.terminated or segment.steps_left[-1] == 1:
                ended.append((paid, segment.success))
            else:
                self._unfinished[place] = Unfinished(segment, paid)
        if ended:  # else the latest figures stay
            self.metrics = dict(zip(("whole_return", "whole_success"), np.mean(ended, axis=0).tolist(), strict=True))
        self.metrics |= {"whole_episodes": float(len(ended)), "unfinished": float(len(self._unfinished))}
        return segments

    def tasks(self, iteration: Iteration) -> list[EpisodeTask]:
        """Return an iteration's segments, those of new episodes in places without an unfinished one."""
        tasks, firsts = iteration.tasks(), dict[tuple[str, int | None], EpisodeStart]()
        for place, task in enumerate(tasks):
            if (before := self._unfinished.get(place)) is not None:
                own, segment = task_of(before.segment), before.segment
                elapsed = (own.start.elapsed_steps if own.start else 0) + segment.rounds[-1] + 1
                start = EpisodeStart(segment.end_state, elapsed, self.window)
                own = replace(own, start=start, layout_seed=None)
                tasks[place] = replace(own, seed=task.seed, chance_seed=task.chance_seed, noise=task.noise)
                continue
            layout = task.scenario, task.layout_seed
            if layout not in firsts:
                env = textgames.parallel_env(task.env_id, **task.kwargs)
                env.reset(seed=task.seed, options={"layout_seed": task.layout_seed})
                firsts[layout] = EpisodeStart(env.state(), 0, self.window)
            tasks[place] = replace(task, start=firsts[layout])
        return tasks

    def check(self, task: EpisodeTask) -> None:
        if len(textgames.parallel_env(task.env_id, **task.kwargs).possible_agents) > 1:
            raise ConfigError(
                f"task_sampling = 'truncated' can't be used on {task.scenario}, which has several players: an episode "
                "is cut between one player's steps; accepted: games of one player, of others against opponents"
            )
