"""What an improvement may spend, and has spent: tokens, calls and seconds.

Costs are recorded before they are charged, and charged from their records: with the same folder a second call charges
as much as the first one, so both take the same decisions.
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
    """Nothing new may be begun; the message says what is spent. An improver hands back its best so far."""


class SpendingMeter:
    """Adds up what is ``spent``, and keeps in a file, by its name, what no record tells of.

    That is the seconds of everything, and the tokens and calls of the episodes that a play was stopped in. ``ended`` is
    set if something wasn't done for want of what was left. A damaged file is a UsageError.
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
        """Return what something has cost that no record tells of, in all processes that worked on it."""
        return self._unrecorded.get(name, Spent())

    def keep(self, name: str, cost: Spent) -> None:
        """Keep what something has cost that no record tells of."""
        self._unrecorded[name] = self.unrecorded(name) + cost
        with replacing(self._file) as stream:
            json.dump({name: asdict(cost) for name, cost in self._unrecorded.items()}, stream, indent=1)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Keep the seconds of the block, added to those of earlier calls that were interrupted."""
        started = monotonic()
        try:
            yield
        finally:
            self.keep(name, Spent(seconds=monotonic() - started))

    @contextmanager
    def spending(self, name: str) -> Iterator[None]:
        """Charge the seconds of the block, added to those of earlier calls that were interrupted."""
        with self.timed(name):
            yield
        self.charge(Spent(seconds=self.unrecorded(name).seconds), name)

    def left(self, name: str, recorded: Spent) -> Budget:
        """Return what is left to continue something that wasn't charged yet, and of which so much is on record."""
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
        """Raise a BudgetSpentError: begin nothing any more."""
        self.ended = True
        raise BudgetSpentError(why)

    def reaches(self, done: int, more: int) -> bool:
        """Report whether what is left reaches for so many more things, by the mean cost of those that are done."""
        limits, spent = asdict(self.budget), asdict(self.spent)
        return all(limit is None or spent[unit] * (done + more) <= limit * done for unit, limit in limits.items())

    def check(self) -> None:
        """Raise a BudgetSpentError if a limit is reached."""
        spent = asdict(self.spent)
        for name, limit in asdict(self.budget).items():
            if limit is not None and spent[name] >= limit:
                self.end(f"the budget is spent: {spent[name]:,.0f} of {limit:,.10g} {name}")
