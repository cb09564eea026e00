"""The settings of the questions: a TOML file as a frozen record, in which each question is a table.

A table that isn't there isn't asked.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from benchmark import UsageError
from research.credit.settings import Game, Measurement, OnGames, StudyJob, base_job
from research.jobs.recipes import NotNegative, PositiveCount, checked_training


class AskedGame(Game):
    """A game that is asked of."""

    imitation: tuple[PositiveCount, ...] = ()  # steps of it of the bases that the question of the penalty trains


class Staleness(Measurement):
    """Batches that an older policy of the run played."""

    lags: tuple[PositiveCount, ...]  # how many iterations older; lag 0 is always there
    cap: Annotated[float, Field(strict=True, gt=0)] = 2.0  # of truncated importance weights, as MSGRPOConfig's


class Groups(BaseModel):
    """Batches of so many episodes in groups of different sizes, from starts that are drawn anew for every batch."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sizes: tuple[Annotated[int, Field(strict=True, ge=2)], ...]
    methods: tuple[str, ...]
    episodes: PositiveCount  # of a batch; tokens follow, as all have the same policy and game
    batches: PositiveCount
    starts: PositiveCount  # that there are; the exact gradient is that of all of them

    @model_validator(mode="after")
    def _check(self) -> "Groups":
        if not self.sizes or any(self.episodes % size for size in self.sizes):
            raise UsageError(f"groups: sizes = {list(self.sizes)} must divide episodes = {self.episodes}")
        if self.episodes // min(self.sizes) > self.starts:
            raise UsageError(
                f"groups: {self.episodes} episodes in groups of {min(self.sizes)} take "
                f"{self.episodes // min(self.sizes)} starts, and starts = {self.starts}"
            )
        return self


class Penalty(BaseModel):
    """The parts of the exact gradient, and short runs under several format penalties from bases that hardly answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    penalties: tuple[NotNegative, ...]
    tokens: PositiveCount  # of each of those runs, in which invalid responses are long
    evaluations: PositiveCount  # of such a run after its start


class Questions(OnGames):
    """Everything that decides the answers."""

    CALLED: ClassVar[str] = "an experiment of questions"

    kind: Literal["questions"]
    games: Mapping[str, AskedGame]
    seeds: PositiveCount = 3  # plain runs of each game, from bases of their own and with starts of their own
    staleness: Staleness | None = None
    groups: Groups | None = None
    penalty: Penalty | None = None

    @model_validator(mode="after")
    def _check_together(self) -> "Questions":
        if not self.games or not (self.staleness or self.groups or self.penalty):
            raise UsageError("nothing is asked: there must be games, and a table staleness, groups or penalty")
        for game in self.games:
            self.training_settings(game, 0)
        return self

    def training_settings(self, name: str, seed: int) -> dict[str, Any]:
        settings = {**self.msgrpo, **self.games[name].msgrpo, "seed": seed}
        return checked_training(settings, f"the settings of runs on {name}")


def jobs_of(questions: Questions) -> list[StudyJob]:
    """Return all jobs, run by run, so that one that is cut short has some runs of every game."""
    jobs: list[StudyJob] = []
    for run in range(questions.seeds):
        for game in questions.games:
            base = base_job(game, run)
            jobs += [base, StudyJob(f"ask/{game}/{run}/plain", "ask", (base.name,), game, run)]
        jobs += [
            StudyJob(f"ask/{game}/{run}/{steps}", "ask", (), game, run, steps=steps)
            for game, about in questions.games.items()
            for steps in (about.imitation if questions.penalty is not None else ())
        ]
    return jobs
