"""The settings of a comparison of improvers, a TOML file as a frozen record, and the jobs that follow from them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, model_validator

from agents import check_spec, options_taken
from benchmark import UsageError, unknown_name
from benchmark.play import is_agent_folder
from benchmark.score import MoveLosses
from research.improve.improvers import IMPROVERS, checked
from research.jobs.bases import PROMPTS
from research.jobs.folder import Folder
from research.jobs.recipes import (
    TUNING_SEED,
    Count,
    Positive,
    PositiveCount,
    SeededSettings,
    Share,
    Table,
    checked_training,
)
from textgames import SCENARIOS, Scenario, known_scenario

TRAINER = "msgrpo"
"""The method that is no improver: the trainer on its own returns, with whom all others are compared."""

UNTRAINED = ("gepa",)
"""Methods that leave the weights as they are, so that no learning rate is tuned."""

LEARNERS = (TRAINER, "imitate", "offline", "preferences", *UNTRAINED)
"""Methods whose tokens this comparison can count."""


TOLD = ("imitate", "preferences", "gepa")
"""Methods that are told what a planner would answer, or what actions are worth."""


class Learner(BaseModel):
    """A method that learns: a table ``[methods.NAME]``, if the name is one of :data:`LEARNERS`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rates: tuple[Positive, ...] = ()  # learning rates that it is tuned over; a single one is taken as it is
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
    """Everything that decides the outcome."""

    CALLED: ClassVar[str] = "a comparison of improvers"

    kind: Literal["improvers"]
    games: tuple[str, ...]  # scenarios of one player with exact values and twins, the most important first
    twin: Count = 1  # the number of the twin that what was learnt is carried to; 0 for none, of a pretrained base alone
    budgets: tuple[PositiveCount, ...]  # tokens, from small to large; the middle one is tuned at
    methods: Mapping[str, Learner]
    players: Mapping[str, Wrapped] = {}
    seeds: PositiveCount = 3
    episodes: PositiveCount = 200  # of an evaluation, in the game and in the twin
    temperature: Positive = 1.0  # of all play, to learn and to be scored
    pretrained: str = ""  # an agent that knows how it is asked, the base in place of a small model that is made
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"  # of a pretrained base in play
    base: Mapping[str, Any] = {}  # fields of agents.tiny.Recipe in which the made base differs
    skill: Share = 0.5  # the share of the planner's moves in what that imitates; the others are random

    @model_validator(mode="after")
    def _check_together(self) -> "Comparison":
        if not self.games or not self.budgets or list(self.budgets) != sorted(set(self.budgets)):
            raise UsageError(f"games must not be empty and budgets must rise, got {self.games} and {self.budgets}")
        for name in self.games:
            scenario = known_scenario(name)
            if scenario is None:
                raise unknown_name("scenario", name, SCENARIOS)
            if MoveLosses.of(scenario, players=1) is None or not scenario.has_twins:
                raise UsageError(f"games: {name} has no exact values for one player, or no twin; frozen-lake has both")
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
            try:
                base = self.pretrained or "tiny"
                spec = player.spec.format(base=base, trained=base)
                check_spec(spec)
                taken, takes_others = options_taken(spec)
            except (LookupError, AttributeError):
                raise UsageError(
                    f"players.{name}: spec = {player.spec!r} has a name in braces; accepted: {{base}} and {{trained}}"
                ) from None
            except ValueError as error:
                raise UsageError(f"players.{name}: {error}") from None
            for option in player.options:
                if option not in taken and not takes_others:
                    raise unknown_name(f"option of players.{name}", option, taken)
        for name, learner in self.methods.items():
            self._check_options(name, learner)
        if self.pretrained:
            self._check_pretrained()
        elif self.dtype != "auto":
            raise UsageError(f"dtype = {self.dtype!r} is of the play of a pretrained base, and none is named")
        elif not self.twin:
            raise UsageError("twin = 0 needs a pretrained base: a base that is made reads a twin, too, from 1 on")
        else:
            self.recipe(self.games[0])
        return self

    def _check_pretrained(self) -> None:
        from agents.models import model_folder, read_card

        if given := self.model_fields_set & {"base", "skill"}:
            raise UsageError(f"pretrained = {self.pretrained!r} makes no base: leave out {', '.join(sorted(given))}")
        try:
            card = read_card(model_folder(self.pretrained))
        except (ValueError, OSError, ModuleNotFoundError) as error:
            raise UsageError(f"pretrained: {error}") from None
        if card is None or card.mode != "direct":
            raise UsageError(
                f"pretrained: {self.pretrained!r} is no model that textbench warmup or a training made with "
                "response_mode = 'direct'; smollm2-lake-start is one"
            )

    def _check_options(self, name: str, learner: Learner) -> None:
        if bool(learner.rates) == (name in UNTRAINED):
            raise UsageError(
                f"methods.{name}: rates = {list(learner.rates)} can't be used; accepted: "
                + ("none, as it trains no weights" if name in UNTRAINED else "one learning rate or more, as in [1e-3]")
            )
        if name in UNTRAINED:
            checked(name, learner.options)
            writer = learner.options.get("writer")
            if writer is not None and not is_agent_folder(writer):
                try:
                    check_spec(writer)
                except ValueError as error:
                    raise UsageError(f"methods.{name}: writer: {error}") from None
        elif name in IMPROVERS:
            checked(name, {**learner.options, "learning_rate": learner.rates[0]})
        else:
            self.training_settings(0, learner.rates[0])

    @property
    def places(self) -> tuple[str, ...]:
        """Where every player plays: ``game``, and ``twin`` if there is one."""
        return ("game", "twin") if self.twin else ("game",)

    @property
    def tuning_budget(self) -> int:
        return self.budgets[len(self.budgets) // 2]

    def scenario(self, game: str, *, twin: bool = False) -> Scenario:
        found = known_scenario(game)
        assert found is not None  # checked when the recipe was read
        return found.twin(self.twin) if twin else found

    def playing(self, spec: str) -> dict[str, Any]:
        """Return a local model as an agent's table, with the options of all play."""
        return {"spec": spec, "temperature": self.temperature} | ({"dtype": self.dtype} if self.pretrained else {})

    def recipe(self, game: str) -> Any:
        from agents.tiny import Recipe

        names = (game, self.scenario(game, twin=True).name)
        try:
            return Recipe.quick(**{**self.base, "modes": ("direct",), "games": names, "prompts": PROMPTS})
        except (ValueError, TypeError) as error:
            raise UsageError(f"base: {error}") from None

    def training_settings(self, seed: int, rate: float) -> dict[str, Any]:
        own = {"response_mode": "direct", "temperature": self.temperature, "seed": seed, "learning_rate": rate}
        return checked_training({**own, **self.methods[TRAINER].options}, f"methods.{TRAINER}.options")

    def additions(self, other: Mapping[str, Any]) -> list[str]:
        """Return the differences that only add work: more seeds, and games behind those that are there."""
        games = other.get("games")
        longer = isinstance(games, list) and list(self.games[: len(games)]) == games and len(self.games) > len(games)
        return super().additions(other) + ["games"] * longer


class ComparedJob(NamedTuple):
    """A piece of work for one process; what doesn't apply to its kind is empty."""

    name: str  # unique, and the path of its result below the folder: ``"learn/frozen-lake/offline/500000/0"``
    kind: Literal["base", "play", "tune", "learn"]
    needs: tuple[str, ...] = ()
    game: str = ""
    method: str = ""  # a learner's name; in play a player's, or ``base``
    budget: int = 0  # tokens
    seed: int = 0
    rate: float = 0.0


def jobs_of(study: Comparison) -> list[ComparedJob]:
    """Return all jobs in the order of importance: game by game, and there seed by seed."""
    jobs: list[ComparedJob] = []
    for game in study.games:
        base, first = f"base/{game}", f"play/{game}/base/0"
        tuned: dict[str, list[ComparedJob]] = {}
        for method, learner in study.methods.items():
            about = game, method, study.tuning_budget, TUNING_SEED
            tuned[method] = [
                ComparedJob(f"tune/{game}/{method}/{rate:g}", "tune", (first,), *about, rate)
                for rate in learner.rates
                if len(learner.rates) > 1
            ]
        jobs.append(ComparedJob(base, "base", (), game))
        jobs += [
            ComparedJob(f"play/{game}/base/{seed}", "play", (base,), game, "base", seed=seed)
            for seed in range(study.seeds)
        ]
        jobs += [job for group in tuned.values() for job in group]
        for seed in range(study.seeds):
            jobs += [
                ComparedJob(_learnt(game, method, budget, seed), "learn", needs, game, method, budget, seed)
                for budget in study.budgets
                for method in study.methods
                if (needs := tuple(job.name for job in tuned[method]) or (first,))
            ]
            for name, player in study.players.items():
                need = _learnt(game, player.trained, study.budgets[-1], seed) if player.trained else base
                jobs.append(ComparedJob(f"play/{game}/{name}/{seed}", "play", (need,), game, name, seed=seed))
    return jobs


def _learnt(game: str, method: str, budget: int, seed: int) -> str:
    return f"learn/{game}/{method}/{budget}/{seed}"


class ComparedFolder(Folder):
    """The folder of one comparison. An agent's folder is ``agent`` beside the result of the job that made it."""

    def base(self, game: str) -> str:
        return f"hf:{self.path / 'base' / game / 'model'}"

    def agent(self, job: str) -> Path:
        return self.path / job / "agent"

    def trained(self, game: str, method: str, budget: int, seed: int) -> Path:
        return self.agent(_learnt(game, method, budget, seed))
