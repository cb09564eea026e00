"""A curriculum: an iteration plays the level of a game's ladder that the policy has got to, and some around it.

It steps up as soon as it keeps, at its level, half of what best play gets above play that doesn't read
(:mod:`textgames.ladders`), on average over the latest iterations there. Easier levels are still played, so that nothing
is unlearnt, and so is the next one, whose difficulty shows before it counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from agents import EpisodeTask
from agents.msgrpo import ConfigError, Iteration, configured
from agents.msgrpo.credit import Trajectory
from textgames import Scenario, known_scenario
from textgames.solving import blind_play


@configured
class LadderSampling:
    """Plays levels, harder ones as the policy gets better."""

    start: int = Field(1, ge=1)
    """The level that the run begins at."""
    share: float = Field(0.5, gt=0, le=1)
    """The share of the groups that are of the policy's level, one at least. As many of the others are of the next level
    as of easier ones, which are drawn evenly."""
    window: int = Field(5, ge=1)
    """Iterations at a level whose mean tells whether it is kept."""
    enough: float = Field(0.5, gt=0, le=1)
    """The share of the headroom that has to be kept for the next level."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        self.level = self.start
        self.metrics: dict[str, float] = {}
        self._kept: list[float] = []  # in the iterations at this level
        self._levels: dict[str, tuple[Scenario, ...]] = {}

    def state_dict(self) -> dict[str, Any]:
        return {"level": self.level, "kept": list(self._kept)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.level, self._kept = state["level"], list(state["kept"])

    def games(self, games: Sequence[Scenario | str]) -> list[Scenario]:
        return [level for game in games for level in self.levels(game if isinstance(game, str) else game.name)]

    def sample(self, iteration: Iteration, rng: np.random.Generator) -> list[Trajectory]:
        tasks = self.tasks(iteration, rng)
        trajectories = iteration.play(tasks)
        kept = float(np.mean([share for each in trajectories if (share := self.share_kept(each)) is not None]))
        self.metrics = {"ladder_level": float(self.level), "ladder_kept": kept}
        self._kept = [*self._kept, kept][-self.window :]
        last = max(map(len, self._levels.values()))
        if len(self._kept) == self.window and np.mean(self._kept) >= self.enough and self.level < last:
            self.level, self._kept = self.level + 1, []
        return trajectories

    def tasks(self, iteration: Iteration, rng: np.random.Generator) -> list[EpisodeTask]:
        """Return the iteration's ordinary tasks, each group at a level; layouts, seeds and their order stay."""
        size, longest, tasks = iteration.config.group_size, iteration.config.max_steps, iteration.tasks()
        groups = len(tasks) // size
        own = max(1, round(self.share * groups))
        first = int(rng.integers(2)) if (groups - own) % 2 else 0  # of an odd number either kind may have one more
        # beside the policy's own level, one half is of the next level, the other of easier ones, if there are any
        drawn = [self.level] * own + [
            self.level + 1 if harder or self.level == 1 else int(rng.integers(1, self.level))
            for harder in ((rng.permutation(groups - own) + first) % 2).tolist()
        ]
        if len({task.scenario for task in tasks}) > 1:  # dealt in turn: the first would always be at the policy's level
            drawn = rng.permutation(drawn).tolist()
        found = []
        for place, task in enumerate(tasks):
            base, levels = known_scenario(task.scenario), self.levels(task.scenario)
            scenario = levels[min(drawn[place // size], len(levels)) - 1]
            around = {name: value for name, value in task.kwargs.items() if base is None or name not in base.kwargs}
            horizon = min(longest or scenario.horizon, scenario.horizon)
            kwargs = {**around, **scenario.kwargs, "max_steps": horizon}
            found.append(replace(task, scenario=scenario.name, env_id=scenario.env_id, kwargs=kwargs))
        return found

    def share_kept(self, trajectory: Trajectory) -> float | None:
        """Return what a trajectory keeps of its level's headroom; ``None`` at another level than the policy's."""
        task = trajectory.task
        scenario = None if task is None else known_scenario(task.scenario)
        if task is None or scenario is None or scenario.level_number != self.level:
            return None
        penalties = task.kwargs.get("format_penalty", 0.0) * int((~trajectory.valid).sum())
        play, rung = blind_play(scenario), scenario.rung
        assert play is not None  # levels are for one player
        assert rung is not None
        assert rung.optimum is not None
        return float((trajectory.returned() + penalties - play.value) / (rung.optimum - play.value))

    def levels(self, name: str) -> tuple[Scenario, ...]:
        """Return the levels of a scenario.

        Raises:
            ConfigError: it has none, or not so many, or they weren't measured.
        """
        if name not in self._levels:
            scenario = known_scenario(name)
            found = () if scenario is None else scenario.levels
            if len(found) < self.start or any(one.rung is None or one.rung.optimum is None for one in found):
                raise ConfigError(
                    f"task_sampling = 'ladder' plays levels that were measured, from level {self.start} on, and "
                    f"{name!r} has {len(found)} of them: choose a scenario of docs/research/ladders.md, or "
                    "another sampler"
                )
            self._levels[name] = found
        return self._levels[name]
