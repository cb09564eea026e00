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
from typing import NoReturn

from agents.common import read_json, replacing
from benchmark import UsageError


@dataclass(frozen=True)
class Budget:
    """The most that may be spent before anything new is begun or a play is stopped; ``None`` for no limit."""

    tokens: int | None = None  # of prompts and completions, of the player and of every model that is asked besides
    calls: int | None = None  # answers of a player, and of those models
    seconds: float | None = None  # of play, of questions and of training

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left of one of them, if they are what is left."""
        return any(limit is not None and limit <= 0 for limit in asdict(self).values())


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
    """Adds up what is spent, and keeps by its name what nothing else records of it.

    That is the seconds of everything, and the tokens and calls of the episodes that a play was stopped in.

    Args:
        budget: the limits.
        file: where this is kept; a kill loses that of what it hits.

    Attributes:
        spent: what was charged.
        ended: whether something wasn't begun, or not done, for want of what was left.

    Raises:
        UsageError: the file is damaged.
    """

    def __init__(self, budget: Budget, file: Path) -> None:
        self.budget, self.spent, self._file = budget, Spent(), file
        self.ended = False
        self._charged: set[str] = set()
        try:
            kept = read_json(file) if file.exists() else {}
            self._unrecorded = {name: Spent(**cost) for name, cost in kept.items()}
        except (ValueError, TypeError, AttributeError) as error:
            raise UsageError(
                f"{file} doesn't say what was spent: {error}; choose another --out, or remove the file: the "
                "seconds that are gone aren't counted then"
            ) from None

    def charge(self, cost: Spent, name: str = "") -> None:
        """Count a cost; of something with a name once, however often it is used."""
        if name not in self._charged:
            self.spent += cost
            self._charged |= {name} - {""}

    def unrecorded(self, name: str) -> Spent:
        """Return what something has cost so far that no record tells of, in all processes that worked on it."""
        return self._unrecorded.get(name, Spent())

    def seconds_of(self, name: str) -> float:
        """Return what something has taken so far, in all processes that worked on it."""
        return self.unrecorded(name).seconds

    def keep(self, name: str, cost: Spent) -> None:
        """Keep what something has cost that no record tells of."""
        self._unrecorded[name] = self.unrecorded(name) + cost
        with replacing(self._file) as stream:
            json.dump({name: asdict(cost) for name, cost in self._unrecorded.items()}, stream, indent=1)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Keep the seconds of the block; what is interrupted and goes on later is added up."""
        started = monotonic()
        try:
            yield
        finally:
            self.keep(name, Spent(seconds=monotonic() - started))

    def left(self, name: str, recorded: Spent) -> Budget:
        """Return what is left for going on with something that wasn't charged yet, and of which so much is on
        record."""
        gone = asdict(self.spent + recorded + self.unrecorded(name))
        limits = asdict(self.budget).items()
        return Budget(**{unit: None if limit is None else limit - gone[unit] for unit, limit in limits})

    @contextmanager
    def without_limits(self) -> Iterator[None]:
        """Charge what the block costs, and stop nothing in it."""
        budget, self.budget = self.budget, Budget()
        try:
            yield
        finally:
            self.budget = budget

    def end(self, why: str) -> NoReturn:
        """Begin nothing any more, for want of what is left.

        Raises:
            BudgetSpentError: says so.
        """
        self.ended = True
        raise BudgetSpentError(why)

    def check(self) -> None:
        """Refuse to begin anything new.

        Raises:
            BudgetSpentError: a limit is reached.
        """
        spent = asdict(self.spent)
        for name, limit in asdict(self.budget).items():
            if limit is not None and spent[name] >= limit:
                self.end(f"the budget is spent: {spent[name]:,.0f} of {limit:,.10g} {name}")
