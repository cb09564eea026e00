"""The tables of a recipe that ask questions: ``[questions.staleness]``, ``.groups`` and ``.penalty``.

A table that isn't there isn't asked.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from benchmark.errors import UsageError
from research.jobs.recipes import PositiveCount

NotNegative = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Staleness(_Table):
    """Batches of ``groups`` times ``group_size`` episodes that an older policy of the run played."""

    lags: tuple[PositiveCount, ...]  # how many iterations older; lag 0 is always there
    batches: PositiveCount
    groups: PositiveCount
    group_size: PositiveCount
    cap: Annotated[float, Field(strict=True, gt=0)] = 2.0  # of truncated importance weights, as MSGRPOConfig's


class Groups(_Table):
    """Batches of so many episodes in groups of different sizes, from starts that are drawn anew for every batch.

    Raises:
        UsageError: the sizes don't divide the episodes, or there are too few starts.
    """

    sizes: tuple[Annotated[int, Field(strict=True, ge=2)], ...]
    methods: tuple[str, ...]
    episodes: PositiveCount  # of a batch; tokens follow, as all have the same policy and game
    batches: PositiveCount
    starts: PositiveCount  # that there are; the exact gradient is that of all of them

    @model_validator(mode="after")
    def _check(self) -> "Groups":
        if not self.sizes or any(self.episodes % size for size in self.sizes):
            raise UsageError(f"questions.groups: sizes = {list(self.sizes)} must divide episodes = {self.episodes}")
        if self.episodes // min(self.sizes) > self.starts:
            raise UsageError(
                f"questions.groups: {self.episodes} episodes in groups of {min(self.sizes)} take "
                f"{self.episodes // min(self.sizes)} starts, and starts = {self.starts}"
            )
        return self


class Penalty(_Table):
    """The parts of the exact gradient, and short runs under several format penalties from bases that hardly answer."""

    penalties: tuple[NotNegative, ...]
    tokens: PositiveCount  # of each of those runs, in which invalid responses are long
    evaluations: PositiveCount  # of such a run after its start


class Questions(_Table):
    """What is asked."""

    staleness: Staleness | None = None
    groups: Groups | None = None
    penalty: Penalty | None = None
