"""Task samplers that play from other states than the start: exploring starts, and branches of visited states.

Rules are pure, so beginning in a state is exact, and costs no more than its own tokens.
"""

from collections import Counter
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

import textgames
from agents import EpisodeStart, EpisodeTask
from agents.msgrpo import Iteration, configured
from agents.msgrpo.credit import Trajectory, rounds_before, task_of
from textgames import rounds_of_play

_BRANCHES = 0xB2A7C4  # keeps the noise of branches apart from that of the episodes
_LONGEST_WALK = 100  # rounds of a walk in a game without a limit of steps
_FURTHER_WALKS = 50  # walks that are tried when those asked for lead nowhere


@configured
class ExploringStarts:
    """A share of the groups begins in a random state that can be reached, and not at the start.

    A state that random legal play reaches from the group's start (Sutton and Barto, "Reinforcement Learning", section
    5.3). All episodes of the group begin there, so its returns are compared like any other group's.
    """

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
        """Return a random start for the group of a task; ``None`` if every walk leads to the game's end alone."""
        env = textgames.parallel_env(task.env_id, **task.kwargs)
        limit = env.rules.max_steps
        longest = self.walk_length or limit or _LONGEST_WALK
        if limit is not None:
            longest = min(longest, limit - 1)
        env.reset(seed=task.seed, options={"layout_seed": task.layout_seed})
        initial = env.state()
        found: dict[Any, int] = {}  # {state: the round in which it was first met}
        for walk in range(self.walks + _FURTHER_WALKS):
            if walk >= self.walks and found:  # further ones are for walks that were over, or back, at once
                break
            for each in rounds_of_play(env.game, initial, longest, rng):
                if not each.over and each.next_state != initial:
                    found.setdefault(each.next_state, each.played + 1)
        if not found:
            return None
        state, rounds = list(found.items())[int(rng.integers(len(found)))]
        return EpisodeStart(state, rounds if self.count_steps else 0)


@configured
class Branches:
    """Samples so many actions in every visited state, besides playing the ordinary episodes.

    The branches of a state are one round each and form a group; with the visits themselves they are ``actions`` samples
    of what the policy does there, for methods that compare actions in a state, such as ``direct_apo``.
    """

    actions: int = Field(4, ge=2)
    """Samples of the policy in each visited state, the episodes' own visits among them."""
    most_states: int = Field(0, ge=0)
    """Most states of an iteration in which further actions are sampled, drawn evenly from those visited; 0: all."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def sample(self, iteration: Iteration, rng: np.random.Generator) -> list[Trajectory]:
        episodes = iteration.play(iteration.tasks())
        branches = self.tasks(iteration, episodes, rng)
        return episodes + (iteration.play(branches) if branches else [])

    def tasks(self, iteration: Iteration, episodes: list[Trajectory], rng: np.random.Generator) -> list[EpisodeTask]:
        """Return the branches of the states that the episodes visited, as many as each of them still lacks."""
        visits: Counter[tuple[Any, Any, int]] = Counter()
        games: dict[Any, EpisodeTask] = {}
        counted: set[tuple[int, int]] = set()
        for each in episodes:
            task = task_of(each)
            game = task.scenario, task.team
            games.setdefault(game, task)
            for t, state in enumerate(each.states):
                seen = (task.seed, each.rounds[t])
                if seen not in counted:  # players who act at once are in one state together
                    counted.add(seen)
                    visits[game, state, rounds_before(each, t)] += 1
        places = list(visits)
        if self.most_states and len(places) > self.most_states:
            places = [places[i] for i in sorted(rng.choice(len(places), self.most_states, replace=False).tolist())]
        noise = (iteration.config.seed, iteration.number, _BRANCHES)
        seed = int(rng.integers(2**31))
        tasks: list[EpisodeTask] = []
        for game, state, elapsed in places:
            begun = replace(games[game], layout_seed=None, chance_seed=None, noise=noise)
            begun = replace(begun, start=EpisodeStart(state, elapsed, rounds=1))
            for _ in range(self.actions - visits[game, state, elapsed]):
                tasks.append(replace(begun, seed=seed + len(tasks)))
        return tasks
