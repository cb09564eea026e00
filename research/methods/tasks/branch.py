"""Branches: after the ordinary episodes, further actions in every state that they visited, one round each.

Rules are pure, so a visited state is a place from which another action can be tried at no cost but its own tokens. The
branches of a state form a group with each other; together with the visits themselves they are ``actions`` samples of
what the policy does there, for methods of credit that compare actions in a state, such as ``direct_apo``.
"""

from collections import Counter
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from agents import EpisodeStart, EpisodeTask
from agents.msgrpo import Iteration, configured
from agents.msgrpo.credit import Trajectory, rounds_before, task_of

_BRANCHES = 0xB2A7C4  # keeps the noise of branches apart from that of the episodes


@configured
class Branches:
    """Samples so many actions in every visited state, besides playing the ordinary episodes."""

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
        visits: Counter[tuple[str, Any, int]] = Counter()
        games: dict[str, EpisodeTask] = {}
        counted: set[tuple[int, int]] = set()
        for each in episodes:
            task = task_of(each)
            games.setdefault(task.scenario, task)
            for t, state in enumerate(each.states):
                seen = (task.seed, each.rounds[t])
                if seen not in counted:  # players who act at once are in one state together
                    counted.add(seen)
                    visits[task.scenario, state, rounds_before(each, t)] += 1
        places = list(visits)
        if self.most_states and len(places) > self.most_states:
            places = [places[i] for i in sorted(rng.choice(len(places), self.most_states, replace=False).tolist())]
        noise = (iteration.config.seed, iteration.number, _BRANCHES)
        seed = int(rng.integers(2**31))
        tasks: list[EpisodeTask] = []
        for scenario, state, elapsed in places:
            game, start = games[scenario], EpisodeStart(state, elapsed, rounds=1)
            for _ in range(self.actions - visits[scenario, state, elapsed]):
                tasks.append(EpisodeTask(scenario, game.env_id, seed + len(tasks), None, game.kwargs, noise, start))
        return tasks
