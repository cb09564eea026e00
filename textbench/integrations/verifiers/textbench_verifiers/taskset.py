"""Which episodes there are to play: the scenarios' fixed seeds to evaluate on, or the training seeds, as tasks."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Self

import verifiers.v1 as vf
from pydantic import Field, model_validator

from agents import EpisodeSession, EpisodeTask, PromptMap
from benchmark.errors import UsageError
from benchmark.runs.plan import find_scenarios, find_suite
from textgames import TRAINING_SEEDS
from textgames.scenarios import Scenario

EPISODES = 50
"""Episodes of each scenario in an evaluation by default; ``textbench run`` plays as many."""


class TextbenchConfig(vf.TasksetConfig):
    """Settings of what is played, under ``--env.taskset``."""

    scenario: str = ""
    """A scenario's name (textbench list), or MODULE:ID of a game of your own. Without scenario and suite: the paper's
    four."""
    suite: str = ""
    """A suite's name (textbench list suites): its scenarios, one episode of each in turn."""
    split: Literal["eval", "train"] = "eval"
    """eval: episode k of a scenario has the seed that it has in textbench run. train: task k is a layout of the
    training seeds, and every rollout has transitions of its own, so that a group shares its start alone."""
    episodes: int | None = Field(None, ge=1)
    """Tasks of each scenario (default: 50 to evaluate, all 10,000 training seeds to train)."""
    seed_offset: int = Field(0, ge=0)
    """The first task's place in the seeds."""
    format_penalty: float | None = Field(None, ge=0)
    """Subtracted from the reward of an invalid response (default: 0 to evaluate, 1 to train)."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Settings of the environment in place of the scenario's, such as size or max_steps."""
    mode: str = "think"
    """The response template of the prompt: think or direct, or one that the file of prompts has."""
    history: int | None = Field(0, ge=0)
    """How many of its last turns a prompt repeats (None: all). With 0 every turn stands for itself."""
    prompts: Path | None = None
    """A file with your own wording of the prompts (TOML)."""

    @model_validator(mode="after")
    def _can_be_played(self) -> Self:
        try:
            scenarios = self.scenarios
            self.prompt_map()
        except (UsageError, OSError) as error:
            raise ValueError(str(error)) from error
        for scenario in scenarios.values() if self.settings else ():
            try:
                EpisodeSession(scenario, opponents=None, **self.settings)
            except (TypeError, ValueError) as error:
                raise ValueError(f"settings don't fit {scenario.name}: {error}") from error
        if self.split == "train" and self.seed_offset + (self.episodes or 1) > len(TRAINING_SEEDS):
            raise ValueError(
                f"there are {len(TRAINING_SEEDS)} training seeds, and {self.episodes or 1} tasks from "
                f"seed_offset={self.seed_offset} on reach beyond them"
            )
        return self

    @property
    def scenarios(self) -> Mapping[str, Scenario]:
        """The scenarios that are played, by name."""
        names = [self.scenario] if self.scenario else [] if self.suite else ["paper"]
        return find_scenarios([*names, *(find_suite(self.suite) if self.suite else ())])

    def prompt_map(self) -> PromptMap:
        """Return what makes the prompts."""
        return PromptMap.from_file(self.prompts, self.mode, self.history)


class TextbenchData(vf.TaskData):
    """One task: a scenario and its start.

    Attributes:
        scenario: as ``textbench list`` has it.
        seed: drives the layout and the transitions; ``None`` if every rollout draws its own.
        layout_seed: fixes the layout alone, for tasks whose rollouts have transitions of their own.
        settings: of the environment, in place of the scenario's.
    """

    scenario: str
    seed: int | None
    layout_seed: int | None
    settings: dict[str, Any]


class TextbenchTask(vf.Task[TextbenchData]):
    """A task, whose reward comes from the game that the environment plays (:mod:`textbench_verifiers.env`)."""

    @property
    def key(self) -> str:
        return str(self.data.id)

    def episode(self, seed: int) -> EpisodeTask:
        """Return the episode to play; ``seed`` is that of the transitions if the task has none."""
        data = self.data
        (scenario,) = find_scenarios([data.scenario]).values()
        own = seed if data.seed is None else data.seed
        return EpisodeTask.of(scenario, own, layout_seed=data.layout_seed, **data.settings)


class TextbenchTaskset(vf.Taskset[TextbenchTask, TextbenchConfig]):
    """The scenarios' episodes, one of each scenario in turn, so that the first tasks of a suite have all of them."""

    def load(self) -> Iterator[TextbenchTask]:
        config = self.config
        train = config.split == "train"
        most = len(TRAINING_SEEDS) - config.seed_offset if train else EPISODES
        penalty = config.format_penalty if config.format_penalty is not None else float(train)
        settings = {**({"protocol": "default"} if train else {}), "format_penalty": penalty, **config.settings}
        for place in range(config.seed_offset, config.seed_offset + (config.episodes or most)):
            for name, scenario in config.scenarios.items():
                seed = TRAINING_SEEDS[place] if train else scenario.seed(place)
                data = TextbenchData(
                    id=f"{name}/{seed}",
                    name=f"{name}/{seed}",
                    scenario=name,
                    seed=None if train else seed,
                    layout_seed=seed if train else None,
                    settings=settings,
                )
                yield TextbenchTask(data, config.task)
