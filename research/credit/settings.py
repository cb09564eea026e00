"""The settings of a study of credit, a TOML file as a frozen record; its jobs, and where their results lie."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, model_validator

from benchmark import UsageError, unknown_name
from research.jobs.bases import PROMPTS, changed
from research.jobs.folder import Folder
from research.jobs.recipes import (
    TUNING_SEED,
    Count,
    ExperimentSettings,
    Positive,
    PositiveCount,
    SeededSettings,
    Share,
    Table,
    checked_training,
    differences_of,
)
from textgames import SCENARIOS, Scenario


class Game(BaseModel):
    """A game that small models are made for: a table ``[games.NAME]`` of the recipe."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scenario: str = ""  # a scenario's name; empty: the table's own
    settings: Table = {}  # of the environment, on top of the scenario's
    horizon: Count = 0  # rounds; 0: the scenario's
    start: Literal["demonstrator", "legal-play"] = "legal-play"  # what its base imitates
    base: Table = {}  # fields of agents.tiny.Recipe in which its base differs
    msgrpo: Table = {}  # fields of MSGRPOConfig of all runs on it
    tokens: PositiveCount  # that a training run may spend: prompts and responses, of rollouts and of updates


class OnGames(SeededSettings):
    """The settings of experiments that make small models for some games and train them."""

    games: Mapping[str, Game]
    msgrpo: Mapping[str, Any] = {}  # fields of :class:`agents.msgrpo.MSGRPOConfig` of all runs
    evaluation_starts: PositiveCount = 48  # of fresh episodes, for which expected returns are computed

    @model_validator(mode="after")
    def _check_games(self) -> "OnGames":
        for name, game in self.games.items():
            if (game.scenario or name) not in SCENARIOS:
                raise unknown_name("scenario", game.scenario or name, SCENARIOS)
            self.recipe(name)
        return self

    def scenario(self, name: str) -> Scenario:
        """Return the scenario of a game, with its own settings."""
        game = self.games[name]
        known = SCENARIOS[game.scenario or name]
        return known._replace(
            name=name, kwargs={**known.kwargs, **game.settings}, horizon=game.horizon or known.horizon
        )

    @property
    def temperature(self) -> float:
        """The temperature of sampling, in training and in measurements."""
        return float(self.msgrpo.get("temperature", 1.25))

    def recipe(self, name: str, run: int = 0) -> Any:
        """Return the recipe of a game's base, :class:`agents.tiny.Recipe`; each run has one of another seed."""
        from agents.tiny import Recipe

        game = self.games[name]
        scenario = game.scenario or name
        if game.start == "demonstrator":
            games = [f"{scenario}-training" if SCENARIOS[scenario].training else scenario]
            start = Recipe.quick(modes=("direct",), games=tuple(games), prompts=PROMPTS)
        else:
            start = Recipe.legal_play((scenario,), heads=1, prompts=PROMPTS)
        try:
            made = changed(start, game.base)
            return changed(made, {"seed": made.seed + run})
        except (ValueError, TypeError) as error:
            raise UsageError(f"games.{name}.base: {error}") from None


STAGES = ("base", "middle", "end")
"""The stages of training at which credit is measured: before, at half and at the end of a plain run."""


class StudyGame(Game):
    """A game of the study."""

    trained: bool = False  # whether methods are also compared by training on it
    carried_to: tuple[str, ...] = ()  # scenarios that every trained model plays besides, without having learnt them
    draws: bool = True  # whether draw rules are measured on it
    max_states: PositiveCount = 20_000  # within reach of a batch's starts


class Measurement(BaseModel):
    """How much is played for a measurement: ``batches`` of ``groups`` times ``group_size`` episodes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    batches: PositiveCount
    groups: PositiveCount
    group_size: PositiveCount


class DrawMeasurement(Measurement):
    """What is measured of draw rules, and how many episodes they draw."""

    rules: tuple[str, ...] = ("aaw", "unbiased", "uniform", "uniform_nonzero", "off")
    sizes: tuple[PositiveCount, ...] = (8, 16, 32, 64)


class Thinking(DrawMeasurement):
    """Draw rules for a model that reasons or is large, if there is no exact gradient: that of all other batches."""

    agent: str = "tiny"
    temperatures: Mapping[str, Positive] = {}  # ``{scenario: of sampling, as in training there}``


class Study(OnGames):
    """Everything that decides the outcome of a study."""

    CALLED: ClassVar[str] = "a study of credit"
    CHOSEN: ClassVar[tuple[str, ...]] = ("games", "arms")

    kind: Literal["credit"]
    games: Mapping[str, StudyGame] = {}
    arms: Mapping[str, Table] = {}  # ``{name: fields of MSGRPOConfig in which it differs}``; the first is the plain one
    factors: Mapping[str, Mapping[str, Table]] = {}  # ``{factor: {level: such fields}}``: an arm for each combination
    methods: tuple[str, ...] = ()  # of credit, to be measured; empty: all that are registered
    runs: PositiveCount = 3  # plain runs of each game, from bases of their own, whose stages are measured
    measurement: Measurement | None = None  # of methods; none: only training is compared
    draws: DrawMeasurement | None = None  # of draw rules
    thinking: Thinking | None = None
    rates: tuple[Positive, ...] = ()  # learning rates that arms without a learning_rate of their own are tuned over
    tuning_share: Share = 0.5  # of a run's tokens, for each of those
    seeds: PositiveCount = 5  # training runs per game and arm, with seeds ``0 .. seeds - 1``
    evaluations: PositiveCount = 8  # of a run, besides the one at its start, at equal distances in tokens
    evaluation_temperature: Positive = 0.5
    other_temperatures: tuple[Positive, ...] = ()  # at which a trained model's expected return is computed besides
    carried_episodes: PositiveCount = 50  # of a trained model in each scenario of ``carried_to``

    @model_validator(mode="after")
    def _check_together(self) -> "Study":
        if not (self.games and self.arms and self.rates) and (self.games or self.thinking is None):
            raise UsageError("games, arms and rates must not be empty: there would be nothing to compare")
        for name, game in self.games.items():
            players = len(self.scenario(name).game().players)
            if game.trained and players > 1:
                raise UsageError(
                    f"games.{name}.trained: a game of {players} players has no return that training raises; "
                    "accepted: games of one player"
                )
            for arm in self.arms:
                self.training_settings(name, arm, 0, self.rates[0])
        carried = [other for game in self.games.values() for other in game.carried_to]
        for other in (*carried, *(self.thinking.temperatures if self.thinking is not None else ())):
            if other not in SCENARIOS:
                raise unknown_name("scenario", other, SCENARIOS)
        return self

    @classmethod
    def completed(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Return a recipe's content with an arm for every combination of factors."""
        with suppress(AttributeError, TypeError):  # tables that aren't any are refused with the rest of the recipe
            crossed = {arm: fields for arm, (_, fields) in combinations(data.get("factors", {})).items()}
            return {**data, "arms": {**data.get("arms", {}), **crossed}}
        return data

    @property
    def crossed(self) -> dict[str, dict[str, str]]:
        """``{arm: {factor: level}}`` of the arms that are combinations of levels."""
        return {arm: cell for arm, (cell, _) in combinations(self.factors).items() if arm in self.arms}

    def rates_of(self, arm: str) -> tuple[float, ...]:
        """Return the learning rates that an arm is tuned over; one alone needs no tuning."""
        own = self.arms[arm].get("learning_rate")
        return self.rates if own is None else (own,)

    @property
    def trained(self) -> list[str]:
        """The games that methods are trained on."""
        return [name for name, game in self.games.items() if game.trained]

    def ends_of(self, game: str) -> tuple[str, ...]:
        """Return the names of what is found of a trained model besides its learning."""
        return (*(f"at {each:g}" for each in self.other_temperatures), *self.games[game].carried_to)

    @property
    def draw_sizes(self) -> tuple[int, ...]:
        """How many episodes draw rules are measured with; empty if they aren't."""
        measured = self.draws or self.thinking
        return () if measured is None else measured.sizes

    @property
    def plain(self) -> str:
        """The arm that the stages of training come from; empty in a study that trains nothing."""
        return next(iter(self.arms), "")

    def training_settings(self, name: str, arm: str, seed: int, rate: float) -> dict[str, Any]:
        """Return the fields of the MSGRPOConfig of one run, checked."""
        own = {"learning_rate": rate, **self.arms[arm], "seed": seed}
        called = f"the settings of arm {arm!r} on {name}"
        return checked_training({**self.msgrpo, **self.games[name].msgrpo, **own}, called)

    def differences(self, other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
        """Return those of all settings, and the first arm: stages and measurements come from it."""
        plain = next(iter(other.get("arms") or ()), "")
        return super().differences(other) | ({} if plain == self.plain else {"plain arm": (self.plain, plain)})

    def additions(self, other: Mapping[str, Any]) -> list[str]:
        """Return the differences that only add work: more seeds, arms and levels of factors."""
        known = other.get("factors") or {}

        def shared(own: Mapping[str, Any], there: Any) -> dict[str, Any]:  # all if the other has no such table
            return {name: own[name] for name in own if not isinstance(there, Mapping) or name in there}

        factors = {factor: shared(levels, known.get(factor)) for factor, levels in self.factors.items()}
        there = {"arms": shared(self.arms, other.get("arms")), "factors": factors}
        whole = self.as_data()
        changed = differences_of({**whole, **there}, other)
        return super().additions(other) + [name for name in differences_of(whole, other) if name not in changed]


def combinations(factors: Mapping[str, Mapping[str, Table]]) -> dict[str, tuple[dict[str, str], Table]]:
    """Return ``{arm: ({factor: level}, fields of MSGRPOConfig)}`` of every combination of levels."""
    found: dict[str, tuple[dict[str, str], Table]] = {}
    for levels in product(*factors.values()):
        cell = dict(zip(factors, levels, strict=True))
        fields = [field for factor, level in cell.items() for field in factors[factor][level].items()]
        if cell:
            found["-".join(levels)] = cell, dict(fields)
    return found


Kind = Literal["base", "stages", "measure", "draws", "think", "tune", "train", "ask"]


class StudyJob(NamedTuple):
    """A piece of work for one process; what doesn't apply to its kind is empty."""

    name: str  # unique, and the path of its result below the folder: ``"train/frozen-lake/rloo/0"``
    kind: Kind  # by which entry of WORK it is done
    needs: tuple[str, ...] = ()  # names of the jobs that must be done before
    game: str = ""
    run: int = 0  # which plain run of the game: its base, its stages and what is measured of them
    stage: str = ""  # one of STAGES
    arm: str = ""
    seed: int = 0
    rate: float = 0.0  # the learning rate that is tried
    steps: int = 0  # of imitation, of a base of its own that is asked; 0: it asks along the plain run


def jobs_of(study: Study) -> list[StudyJob]:
    """Return all jobs of a study, in the order of importance.

    A study that is cut short has whole runs of what is measured; then methods are trained on the first game and on the
    others, seed by seed; the model that reasons comes last.
    """
    jobs = list[StudyJob]()
    sizes: dict[Kind, Any] = {"draws": study.draws, "measure": study.measurement}
    for run in range(study.runs):
        jobs += [base_job(game, run) for game in study.games]
        jobs += [
            StudyJob(f"stages/{game}/{run}", "stages", (f"base/{game}/{run}",), game, run, arm=study.plain)
            for game in study.games
        ]
        jobs += [
            StudyJob(f"{kind}/{game}/{run}/{stage}", kind, (_source(game, run, stage),), game, run, stage)
            for stage in STAGES
            for kind, size in sizes.items()
            if size is not None
            for game, about in study.games.items()
            if kind == "measure" or about.draws
        ]
    jobs += [*_trained(study, study.trained[:1]), *_trained(study, study.trained[1:])]
    if study.thinking is not None:
        jobs += [StudyJob(f"think/{name}", "think", game=name) for name in study.thinking.temperatures]
    return jobs


def base_job(game: str, run: int) -> StudyJob:
    """Return the job that makes the base of a run of a game."""
    return StudyJob(f"base/{game}/{run}", "base", game=game, run=run)


def _trained(study: Study, games: Sequence[str]) -> list[StudyJob]:
    """Return the training of every arm on some games, and its tuning if there are several rates."""
    tuned: dict[tuple[str, str], list[StudyJob]] = {}
    for game in games:
        stages = (f"stages/{game}/0",)
        for arm in study.arms:
            rates = study.rates_of(arm)
            tuned[game, arm] = [
                StudyJob(f"tune/{game}/{arm}/{rate:g}", "tune", stages, game, arm=arm, seed=TUNING_SEED, rate=rate)
                for rate in rates
                if len(rates) > 1
            ]
    jobs = [job for group in tuned.values() for job in group]
    for seed in range(study.seeds):
        for (game, arm), group in tuned.items():
            needs = tuple(job.name for job in group) or (f"stages/{game}/0",)
            jobs.append(StudyJob(f"train/{game}/{arm}/{seed}", "train", needs, game, arm=arm, seed=seed))
    return jobs


def _source(game: str, run: int, stage: str) -> str:
    return f"base/{game}/{run}" if stage == "base" else f"stages/{game}/{run}"


class StudyFolder(Folder):
    """The folder of one study.

    A measurement is done when it has all of ``methods``: if a method came in since, the same command measures that one.
    """

    def __init__(self, path: Path, methods: tuple[str, ...] = ()) -> None:
        super().__init__(path)
        self.methods = methods

    def claim(self, experiment: ExperimentSettings) -> None:
        """Claim the folder; one whose arms were tuned with the seed of a training run is refused."""
        super().claim(experiment)
        for file in self.path.glob("tune/*/*/*/result.json"):
            seed = self.result(str(file.parent.relative_to(self.path)))["settings"]["seed"]
            if seed != TUNING_SEED:
                raise UsageError(
                    f"{self.path} has arms that were tuned with seed {seed}, now it is {TUNING_SEED}; choose another "
                    "--out"
                )

    def is_done(self, name: str) -> bool:
        if not super().is_done(name):
            return False
        return not name.startswith("measure/") or not self.unmeasured(name)

    def unmeasured(self, name: str) -> list[str]:
        there: dict[str, Any] = self.result(name) if super().is_done(name) else {}
        known = {method["name"] for method in there.get("methods", ())} | set(there.get("skipped", ()))
        return [method for method in self.methods if method not in known]

    def stage(self, game: str, stage: str, run: int = 0) -> Path:
        """Return the folder of the model of a stage of a plain run; arms are trained from the base of run 0."""
        return self.path / _source(game, run, stage) / ("model" if stage == "base" else stage)
