"""What an improvement may spend, and has spent: tokens, calls and seconds.

Everything that costs is recorded before it is charged, and charged from its record: what is done already costs a second
call with the same folder as much as it cost the first one, so both take the same decisions.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic

from agents.common.files import replacing


@dataclass(frozen=True)
class Budget:
    """The most that may be spent before anything new is begun; ``None`` for no limit.

    Attributes:
        tokens: of prompts and completions, of the player and of every model that is asked besides.
        calls: answers of a player, and of those models.
        seconds: of play, of questions and of training.
    """

    tokens: int | None = None
    calls: int | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Spent:
    """What something has cost, in the units of :class:`Budget`."""

    tokens: int = 0
    calls: int = 0
    seconds: float = 0.0

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(self.tokens + other.tokens, self.calls + other.calls, self.seconds + other.seconds)


class BudgetSpentError(Exception):
    """Nothing new may be begun any more; the message says what is spent. An improver hands back its best so far."""


class SpendingMeter:
    """Adds up what is spent, and keeps the seconds of everything by its name, which nothing else records.

    Args:
        budget: the limits.
        file: where the seconds are kept; a kill loses those of what it hits.

    Attributes:
        spent: what was charged.
    """

    def __init__(self, budget: Budget, file: Path) -> None:
        self.budget, self.spent, self._file = budget, Spent(), file
        self._charged: set[str] = set()
        self._seconds: dict[str, float] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}

    def charge(self, cost: Spent, name: str = "") -> None:
        """Count a cost; of something with a name once, however often it is used."""
        if name not in self._charged:
            self.spent += cost
            self._charged |= {name} - {""}

    def seconds_of(self, name: str) -> float:
        """What something has taken so far, in all processes that worked on it."""
        return self._seconds.get(name, 0.0)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Keep the seconds of the block; what is interrupted and goes on later is added up."""
        started = monotonic()
        try:
            yield
        finally:
            self._seconds[name] = self.seconds_of(name) + monotonic() - started
            with replacing(self._file) as stream:
                json.dump(self._seconds, stream, indent=1)

    def seconds_left(self, name: str = "") -> float | None:
        """What is left for going on with something; ``None`` without a limit."""
        if self.budget.seconds is None:
            return None
        return self.budget.seconds - self.spent.seconds - self.seconds_of(name)

    def check(self) -> None:
        """Refuse to begin anything new.

        Raises:
            BudgetSpentError: a limit is reached.
        """
        spent = asdict(self.spent)
        for name, limit in asdict(self.budget).items():
            if limit is not None and spent[name] >= limit:
                raise BudgetSpentError(f"the budget is spent: {spent[name]:,.6g} of {limit:,.6g} {name}")
