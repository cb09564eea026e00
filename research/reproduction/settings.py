"""The settings of one reproduction: a TOML file as a frozen record. The outcome depends on nothing else.

``recipe file + options of the command line -> Experiment``.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, model_validator

from benchmark import UsageError, unknown_name
from benchmark.runs import PAPER_SCENARIOS
from research.jobs.bases import changed
from research.jobs.recipes import (
    Count,
    NotNegative,
    PositiveCount,
    SeededSettings,
    Table,
    checked_training,
    read_recipe,
)
from textgames import SCENARIOS

if TYPE_CHECKING:
    from agents.tiny import Recipe

_NAMING = ("title", "ships")  # settings of an experiment that say how results are called and don't touch them


class Base(BaseModel):
    """How one base model is made: a table of the recipe."""

    # All other keys are fields of agents.tiny.Recipe that this base has for itself, on top of the data's.
    model_config = ConfigDict(frozen=True, extra="allow")
    source: str = ""  # an embedded model (``"tiny"``) or a folder to take instead of making one; empty: it is made


class Shipped(BaseModel):
    """Under which names the package ships what an experiment makes."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    base: str = "tiny"  # the small base; empty: it doesn't ship
    trained: str = "tiny-msgrpo-{game}"  # the model that was trained on a game


PROTOCOL = "default"
"""What an unreadable response leads to: the first action, as in the paper."""


class Experiment(SeededSettings):
    """Everything that decides the outcome of a reproduction; a UsageError names settings that don't go together."""

    CALLED: ClassVar[str] = "a reproduction"
    CHOSEN: ClassVar[tuple[str, ...]] = ("arms",)

    games: tuple[str, ...]  # training scenarios; every arm is trained on each, starting from the small base
    arms: Mapping[str, Table]  # ``{name: settings of MS-GRPO in which the arm differs}``
    bases: Mapping[str, Base]  # ``{"small": ..., "large": ...}``; without ``large`` nothing is compared with it
    data: Table  # fields of the tiny models' recipe that both bases share: what they learn from, and for how long
    msgrpo: Table  # fields of :class:`agents.msgrpo.MSGRPOConfig` of all runs
    by_game: Mapping[str, Table] = {}  # fields for the runs on one game, on top
    seeds: PositiveCount = 5  # training runs per game and arm, with seeds ``0 .. seeds - 1``
    iterations: PositiveCount = 100  # of MS-GRPO, per run
    scenarios: tuple[str, ...] = PAPER_SCENARIOS  # what everything is evaluated on
    evaluate_every: PositiveCount = 10  # iterations between evaluations during training
    evaluation_episodes: PositiveCount = 50  # fixed episodes of each of those: ``first_seed + k``
    final_episodes: PositiveCount = 500  # fresh episodes at the end, for every agent: ``first_seed + final_offset + k``
    final_offset: Count = 1000  # keeps the fresh episodes apart from the fixed ones
    temperature: NotNegative = 0.5  # of all evaluations
    reference_agents: tuple[str, ...] = ("random", "greedy")  # without a model, evaluated too, for scale
    control_episodes: Count = 50  # per game, for the controls; 0: no controls
    title: str = "The paper's experiment in miniature"  # of the report
    ships: Shipped = Shipped()  # names of the models that the package ships

    @classmethod
    def read(cls, source: str | Path, changes: Mapping[str, Any] | None = None) -> Self:
        """Read a recipe as any experiment's; a change of ``games`` names some that the recipe evaluates."""
        scenarios = cls.checked(cls.completed(read_recipe(source)), source).scenarios
        for name in (changes or {}).get("games") or ():
            if name not in scenarios:
                raise unknown_name("game in this recipe", name, scenarios)
        return super().read(source, changes)

    @classmethod
    def completed(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Return a recipe's content without its kind, which reproductions needn't say."""
        return {name: value for name, value in data.items() if name != "kind"}

    @model_validator(mode="after")
    def _check_together(self) -> "Experiment":
        for name in (*self.games, *self.scenarios):
            if name not in SCENARIOS:
                raise unknown_name("scenario", name, SCENARIOS)
        missing = [name for name in self.games if name not in self.scenarios]
        if missing:
            raise UsageError(f"scenarios must hold every game that is trained on, {missing[0]!r} is missing")
        if not self.games or not self.arms:
            raise UsageError("games and arms must not be empty: there would be nothing to train")
        if "small" not in self.bases or set(self.bases) - {"small", "large"}:
            raise UsageError(f"bases are small and, to compare with, large; got {', '.join(self.bases) or 'none'}")
        if self.final_offset < self.evaluation_episodes:
            raise UsageError(
                f"final_offset = {self.final_offset} would play some of the {self.evaluation_episodes} fixed episodes "
                f"again; accepted: at least {self.evaluation_episodes}"
            )
        for game in self.games:  # a wrong field of a run is said now, not after the pretraining
            for arm in self.arms:
                self.training_settings(game, arm, 0)
        for base in self.bases:
            self.recipe(base)
        return self

    def training_settings(self, game: str, arm: str, seed: int) -> dict[str, Any]:
        """Return the fields of the MSGRPOConfig of one run; a UsageError if the config refuses them."""
        settings = {
            **self.msgrpo,
            **self.by_game.get(game, {}),
            **self.arms[arm],
            "seed": seed,
            "iterations": self.iterations,
            "eval_every": self.evaluate_every,
            "eval_episodes": self.evaluation_episodes,
            "eval_scenarios": list(self.scenarios),
            "eval_temperature": self.temperature,
            "eval_protocol": PROTOCOL,
        }
        return checked_training(settings, f"the settings of arm {arm!r} on {game}")

    def recipe(self, base: str) -> "Recipe":
        """Return how one base is made; a UsageError if the recipe of tiny models refuses its fields."""
        from agents.tiny import Recipe

        try:
            return changed(Recipe(), {**self.data, **(self.bases[base].model_extra or {})})
        except (ValueError, TypeError) as error:
            raise UsageError(f"the settings of base {base!r}: {error}") from None

    def differences(self, other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
        """Return those of all settings but :data:`_NAMING`."""
        found = super().differences(other)
        return {name: pair for name, pair in found.items() if name.partition(".")[0] not in _NAMING}
