"""The settings of one experiment with a pretrained model: a TOML file as a frozen record.

``recipe file + options of the command line -> Pretrained``. The outcome depends on nothing else.
"""

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from agents import check_spec, known_options, read_protocol
from benchmark import UsageError, unknown_name
from research.jobs.recipes import Count, ExperimentSettings, NotNegative, PositiveCount, Table, checked_training
from textgames import SCENARIOS, Scenario

if TYPE_CHECKING:
    from agents.msgrpo import MSGRPOConfig

MODEL = "model"
"""The name of the pretrained model as a player, without anything of ours."""

STARTS, ARMS = "starts.", "arms."
"""What the names of warm starts and of trained models begin with, if an agent is named."""


class Part(BaseModel):
    """A part of the experiment, which can be run by itself, and a section of the report."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str  # of its section
    about: str = ""  # what it asks, and how its tables are read
    compare: tuple[tuple[str, str], ...] = ()  # pairs of players: by how much the first is better than the second


class Start(BaseModel):
    """A warm start: the pretrained model imitates a teacher."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scenarios: tuple[str, ...]  # that the teachers play
    examples: PositiveCount  # decisions to imitate
    teachers: tuple[str, ...] = ("planner",)
    explore: Annotated[float, Field(strict=True, ge=0, le=1)] = 0.5  # the share of random moves in what is visited
    view: Table = {}  # settings of the environment in place of the scenario's
    imitation: Table = {}  # fields of MSGRPOConfig in which its imitation differs
    seeds: Count = 0  # so many, each from decisions of its own, one for the run of every seed; 0: one for all runs


class Arm(BaseModel):
    """A training, with one or several seeds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    part: str  # which part of the experiment it belongs to
    start: str = ""  # what it begins from: a warm start, another arm (its run of the same seed), or the model itself
    scenarios: tuple[str, ...] = ()  # empty: the file's
    config: str = ""  # a training that ships, or a file, whose settings it has in place of the recipe's
    msgrpo: Table = {}  # fields of MSGRPOConfig, on top
    view: Table = {}  # settings of the environment in place of the scenario's
    seeds: PositiveCount = 1
    trainer: Literal["msgrpo", "trl"] = "msgrpo"
    like: str = ""  # for TRL: the arm whose run of the same seed it is to equal
    equal: Literal["episodes", "seconds"] = "episodes"  # in what; seconds are the processor's


class Ship(BaseModel):
    """A model that the package ships."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    agent: str  # what it is: "starts.NAME", or "arms.NAME" for seed 0 of that training
    rank: Count = 0  # of the adapter; 0: as it was trained


class Player(BaseModel):
    """A player of the fresh episodes, and the protocol by which it plays."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    part: str
    agent: str  # "model", "starts.NAME", "arms.NAME" (all of its seeds) or any agent of the package, "gguf:PATH" say
    scenarios: tuple[str, ...]
    protocol: str = "random"  # what an unreadable response leads to
    options: Table = {}  # of the agent, as commands have them: history, legal_only, temperature, ...
    shown: Count = 0  # decisions of the planner that stand in the prompt as examples
    view: Table = {}  # settings of the environment in place of the scenario's
    episodes: Count = 0  # 0: the recipe's
    seeds: Count = 0  # of an arm or a warm start, the first so many; 0: all


class Pretrained(ExperimentSettings):
    """Everything that decides the outcome of the experiment; a UsageError names settings that don't go together."""

    CALLED: ClassVar[str] = "this experiment"
    CHOSEN: ClassVar[tuple[str, ...]] = ()

    kind: Literal["pretrained"]
    title: str = "The paper's experiment with a pretrained model"
    model: str  # the pretrained model, as commands name it
    mode: Literal["direct", "think"] = "direct"  # how it is asked, if nothing else is said
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"  # of the matrix products in play; trainings have their own
    episodes: PositiveCount = 400  # fresh ones: seeds ``first_seed + first_episode + k``
    first_episode: Count = 1000  # keeps them apart from those of the evaluations in training
    speed: Annotated[float, Field(gt=0)] = 1.0  # of its machine, two cores being 1: by this times are foretold
    at_once: PositiveCount = 32  # episodes that are played at the same time; bounds the memory
    temperature: NotNegative = 0.5  # of play
    max_tokens: PositiveCount = 16  # of a response in play, if a player's options say nothing else
    last_iterations: PositiveCount = 10  # over which a training's own success is averaged
    imitation: Mapping[str, Any] = {}  # fields of MSGRPOConfig in which warm starts differ from textbench warmup's
    msgrpo: Mapping[str, Any] = {}  # fields of MSGRPOConfig of all trainings that name no file
    steps_per_episode: PositiveCount = 4  # that TRL's trainer learns from
    micro_batch: PositiveCount = 8  # samples that TRL's trainer learns from at once
    parts: Mapping[str, Part]
    starts: Mapping[str, Start] = {}
    arms: Mapping[str, Arm] = {}
    players: Mapping[str, Player] = {}
    ships: Mapping[str, Ship] = {}  # adapters, by the names under which they ship
    rival: Player | None = None  # how a model plays that ``--agent`` names
    rivals: tuple[str, ...] = ()  # those that it names

    @classmethod
    def read(cls, source: str | Path, changes: Mapping[str, Any] | None = None) -> Self:
        """Read a recipe and apply the command line's changes; ``None`` changes nothing.

        They are ``seeds`` (of every arm and warm start at most so many), ``iterations`` (of every training) and
        ``rivals``. A UsageError says what can't be, as for any experiment.
        """
        values = {name: value for name, value in (changes or {}).items() if value is not None}
        experiment = super().read(source, {"rivals": values.get("rivals", ())})
        changed = experiment.model_dump()
        for table in (*changed["arms"].values(), *changed["starts"].values()):
            table["seeds"] = min(table["seeds"], values.get("seeds", table["seeds"]))
        if "iterations" in values:
            for arm in changed["arms"].values():
                arm["msgrpo"] = {**arm["msgrpo"], "iterations": values["iterations"]}
        return cls.checked(changed, source) if values else experiment

    @model_validator(mode="after")
    def _check_together(self) -> "Pretrained":
        for name, start in self.starts.items():
            self._check_view(f"starts.{name}", start.scenarios, start.view)
            self.imitation_config(name, 0)
        for name, arm in self.arms.items():
            self._one_of(f"arms.{name}.part", arm.part, self.parts)
            self._one_of(f"arms.{name}.start", arm.start, {**self.starts, **self.arms}, optional=True)
            self._one_of(f"arms.{name}.like", arm.like, self.arms, optional=True)
            if arm.start in self.starts and 0 < self.starts[arm.start].seeds < arm.seeds:
                starts = self.starts[arm.start].seeds
                raise UsageError(
                    f"arms.{name} has {arm.seeds} seeds and starts.{arm.start} {starts}: accepted is a warm start of "
                    "its own for each run, or seeds = 0 for one that all have"
                )
            if (arm.trainer == "trl") != bool(arm.like):
                raise UsageError(f"arms.{name}: trainer = 'trl' and like go together, each needs the other")
            self._check_view(f"arms.{name}", self.scenarios_of(name), arm.view)
            mode, taught = self._mode_of(name), self._mode_of(arm.start or name)
            if mode != taught:
                raise UsageError(
                    f"arms.{name} is trained with response_mode = {mode!r} and what it begins from, {arm.start}, with "
                    f"{taught!r}: set arms.{name}.msgrpo.response_mode = {taught!r}"
                )
        for name, shipped in self.ships.items():
            if not self._is_made(f"ships.{name}.agent", shipped.agent):
                raise UsageError(f"ships.{name}.agent is {STARTS}NAME or {ARMS}NAME, got {shipped.agent!r}")
        for name in self.starts.keys() & self.arms.keys():
            raise UsageError(f"{name} is a warm start and an arm: give them different names")
        try:
            TopologicalSorter({name: [arm.start, arm.like] for name, arm in self.arms.items()}).prepare()
        except CycleError as error:
            raise UsageError(f"{' needs '.join(reversed(error.args[1]))}: something has to come first") from None
        for name, player in self.everyone.items():
            self._check_player(f"players.{name}", player)
        for name, part in self.parts.items():
            for pair in part.compare:
                for one in pair:
                    self._one_of(f"parts.{name}.compare", one, self.everyone)
        return self

    def _mode_of(self, made: str) -> str:
        """Return the response mode in which a warm start or an arm is made; its settings are checked."""
        if made in self.starts:
            return self.imitation_config(made, 0).response_mode
        mode: str = self.training_settings(made, 0)["response_mode"]
        return mode

    def _one_of(self, where: str, name: str, known: Mapping[str, Any], *, optional: bool = False) -> None:
        if name not in known and not (optional and not name):
            raise unknown_name(f"one for {where}", name, known)

    def _check_view(self, where: str, scenarios: Sequence[str], view: Table) -> None:
        for scenario in scenarios:
            if scenario not in SCENARIOS:
                raise unknown_name("scenario", scenario, SCENARIOS)
        if view and len(scenarios) != 1:
            raise UsageError(f"{where}.view needs one scenario, whose settings they are; got {', '.join(scenarios)}")
        if view:
            try:
                seen(scenarios[0], view).game()
            except (ValueError, TypeError) as error:
                raise UsageError(f"{where}.view: {error}") from None

    def _is_made(self, where: str, agent: str) -> bool:
        """Return whether an agent is a warm start or an arm of this recipe, and then one that it has."""
        for prefix, known in ((STARTS, self.starts), (ARMS, self.arms)):
            if agent.startswith(prefix):
                self._one_of(where, agent.removeprefix(prefix), known)
                return True
        return False

    def _check_player(self, where: str, player: Player) -> None:
        self._one_of(f"{where}.part", player.part, self.parts)
        self._check_view(where, player.scenarios, player.view)
        made = self._is_made(f"{where}.agent", player.agent)
        for option in player.options:
            if option not in known_options():
                raise unknown_name(f"option of an agent ({where}.options)", option, known_options())
        try:
            read_protocol(player.protocol)
            if player.agent != MODEL and not made:
                check_spec(player.agent)
        except ValueError as error:
            raise UsageError(f"{where}: {error}") from None

    @property
    def everyone(self) -> dict[str, Player]:
        """All players by name: those of the recipe and those that the command line names."""
        if self.rivals and self.rival is None:
            raise UsageError("--agent: this recipe has no [rival] table, which says what another model plays")
        named = {spec: self.rival.model_copy(update={"agent": spec}) for spec in self.rivals if self.rival}
        return {**self.players, **named}

    def imitation_config(self, start: str, seed: int) -> "MSGRPOConfig":
        """Return the settings of one warm start; a UsageError if the config refuses them."""
        from agents.msgrpo import ConfigError
        from agents.msgrpo.warmup import warmup_config

        own = self.starts[start]
        settings = {"response_mode": self.mode, **self.imitation, **own.imitation}
        settings |= {"seed": seed} if own.seeds else {}
        try:
            return warmup_config(self.model, own.scenarios, own.examples, **settings)
        except ConfigError as error:
            raise UsageError(f"the settings of starts.{start}: {error}") from None

    def training_settings(self, arm: str, seed: int) -> dict[str, Any]:
        """Return the settings of one run: the recipe's or its file's, then the arm's own; a UsageError if refused."""
        own = self.arms[arm]
        shared = _of_file(own.config) if own.config else {"response_mode": self.mode, **self.msgrpo}
        settings = {**shared, **own.msgrpo}
        settings |= {"seed": seed, "threads": 0, "model": "", "out": ""}  # cores are shared by the processes
        settings |= {"scenarios": [] if own.view else list(own.scenarios or settings.get("scenarios", ()))}
        return checked_training(settings, f"the settings of arms.{arm}")

    def scenarios_of(self, arm: str) -> tuple[str, ...]:
        """Return what an arm is trained on."""
        own = self.arms[arm]
        found = own.scenarios or tuple(_of_file(own.config).get("scenarios", ()))
        if not found:
            raise UsageError(f"arms.{arm} has no scenarios, and its config names none")
        return found

    def game_of(self, arm: str) -> Scenario | str:
        """Return what its trainer is given: the scenario as the arm sees it; nothing, if its settings name several."""
        view = self.arms[arm].view
        return seen(self.scenarios_of(arm)[0], view) if view else ""


def seen(scenario: str, view: Table) -> Scenario:
    """Return a scenario with other settings of its environment, under its own name."""
    known = SCENARIOS[scenario]
    return known._replace(kwargs={**known.kwargs, **view})


def _of_file(name: str) -> dict[str, Any]:
    """Return the settings in which a training that ships differs from the defaults, and its response mode."""
    from agents.msgrpo import ConfigError, MSGRPOConfig

    if not name:
        return {}
    try:
        config = MSGRPOConfig.from_toml(name)
        return {"response_mode": config.response_mode, **own_settings(config)}  # said, too, if it is the default
    except ConfigError as error:
        raise UsageError(str(error)) from None


def own_settings(config: "MSGRPOConfig") -> dict[str, Any]:
    """Return the settings of a training that aren't the defaults."""
    own = {key: pair[0] for key, pair in config.differences(type(config)()).items()}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in own.items()}
