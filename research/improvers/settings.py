"""The settings of a comparison of improvers: a TOML file as a frozen record. The outcome depends on nothing else."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from benchmark.errors import UsageError, unknown_name
from benchmark.improve import IMPROVERS
from benchmark.score.move_losses import MoveLosses
from research.jobs.bases import PROMPTS
from research.jobs.recipes import Positive, PositiveCount, SeededSettings, Share, Table, checked_training
from textgames.scenarios import SCENARIOS, Scenario, known_scenario

TRAINER = "msgrpo"
"""The method that is no improver: the trainer on its own returns, with whom all others are compared."""

LEARNERS = (TRAINER, "imitate", "offline", "preferences")
"""Methods whose tokens this comparison can count."""


class Learner(BaseModel):
    """A method that learns: a table ``[methods.NAME]``, where the name is one of :data:`LEARNERS`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rates: Annotated[tuple[Positive, ...], Field(min_length=1)]  # learning rates that it is tuned over
    options: Table = {}  # of the improver; of MS-GRPO the fields of MSGRPOConfig
    play_share: Share = 0.5  # of the budget, for its own play; the rest is for passes over what it learns from
    most_passes: PositiveCount = 8


class Wrapped(BaseModel):
    """A player around others, which learns nothing: a table ``[players.NAME]``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    spec: str  # {base} stands for the base, {trained} for what ``trained`` made of it at the largest budget
    options: Table = {}
    trained: str = ""  # one of the methods


class Comparison(SeededSettings):
    """Everything that decides the outcome.

    Raises:
        UsageError: settings that don't go together; names them and says what is accepted.
    """

    CALLED: ClassVar[str] = "a comparison of improvers"

    kind: Literal["improvers"]
    games: tuple[str, ...]  # scenarios of one player with exact values and twins, the most important first
    twin: PositiveCount = 1  # the number of the twin that what was learnt is carried to
    budgets: tuple[PositiveCount, ...]  # tokens, from small to large; the middle one is tuned at
    methods: Mapping[str, Learner]
    players: Mapping[str, Wrapped] = {}
    seeds: PositiveCount = 3
    episodes: PositiveCount = 200  # of an evaluation, in the game and in the twin
    temperature: Positive = 1.0  # of all play, to learn and to be scored
    base: Mapping[str, Any] = {}  # fields of agents.tiny.Recipe in which the base differs
    skill: Share = 0.5  # the share of the planner's moves in what the base imitates; the others are random

    @model_validator(mode="after")
    def _check_together(self) -> "Comparison":
        if not self.games or not self.budgets or list(self.budgets) != sorted(set(self.budgets)):
            raise UsageError(f"games must not be empty and budgets must rise, got {self.games} and {self.budgets}")
        for name in self.games:
            self._check_game(name)
        for name in self.methods:
            if name not in LEARNERS:
                raise unknown_name("method with counted tokens", name, LEARNERS)
        if TRAINER not in self.methods:
            raise UsageError(f"methods.{TRAINER} is missing: it is what the others are compared with")
        for name, player in self.players.items():
            if ("{trained}" in player.spec) != bool(player.trained) or player.trained not in ("", *self.methods):
                raise UsageError(
                    f"players.{name}: trained = {player.trained!r} doesn't go with spec = {player.spec!r}; a spec with "
                    f"{{trained}} needs one of {', '.join(self.methods)}, others none"
                )
        for name, learner in self.methods.items():
            self._check_options(name, learner)
        self.recipe(self.games[0])
        return self

    def _check_game(self, name: str) -> None:
        scenario = known_scenario(name)
        if scenario is None:
            raise unknown_name("scenario", name, SCENARIOS)
        if MoveLosses.of(scenario, players=1) is None or not scenario.has_twins:
            raise UsageError(f"games: {name} has no exact values for one player, or no twin; frozen-lake has both")

    def _check_options(self, name: str, learner: Learner) -> None:
        from benchmark.improve import checked

        if name in IMPROVERS:
            checked(name, {**learner.options, "learning_rate": learner.rates[0]})
        else:
            self.training_settings(0, learner.rates[0])

    @property
    def tuning_budget(self) -> int:
        return self.budgets[len(self.budgets) // 2]

    def scenario(self, game: str, *, twin: bool = False) -> Scenario:
        """A game's scenario, or that of its twin."""
        found = known_scenario(game)
        assert found is not None  # checked when the recipe was read
        return found.twin(self.twin) if twin else found

    def recipe(self, game: str) -> Any:
        """The recipe of a game's base, :class:`agents.tiny.Recipe`.

        Raises:
            UsageError: fields that the recipe refuses.
        """
        from agents.tiny.recipe import Recipe

        names = (game, self.scenario(game, twin=True).name)
        try:
            return Recipe.quick(**{**self.base, "modes": ("direct",), "games": names, "prompts": PROMPTS})
        except (ValueError, TypeError) as error:
            raise UsageError(f"base: {error}") from None

    def training_settings(self, seed: int, rate: float) -> dict[str, Any]:
        """The fields of the MSGRPOConfig of one run, checked.

        Raises:
            UsageError: the config refuses them.
        """
        own = {"response_mode": "direct", "temperature": self.temperature, "seed": seed, "learning_rate": rate}
        return checked_training({**own, **self.methods[TRAINER].options}, f"methods.{TRAINER}.options")

    def additions(self, other: Mapping[str, Any]) -> list[str]:
        """The differences that only add work: more seeds, and games behind those that are there."""
        games = other.get("games")
        longer = isinstance(games, list) and list(self.games[: len(games)]) == games and len(self.games) > len(games)
        return super().additions(other) + ["games"] * longer
