"""What servers tell of their limits: so many requests and tokens a minute, so many of them left, full again when.

OpenAI's headers (``x-ratelimit-remaining-tokens`` ...; most gateways and LiteLLM have them too) and Anthropic's
(``anthropic-ratelimit-tokens-remaining`` ...) are read. A :class:`Budget` keeps one limit up to date between answers.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from math import isfinite
from time import monotonic
from typing import NamedTuple

KINDS = ("requests", "tokens", "input-tokens", "output-tokens")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
MOST_UNITS, LONGEST_RESET, SHORTEST_RESET = 1e12, 1e8, 1e-3
"""What is beyond isn't a limit that somebody set: a number of units, and seconds (three years; a thousandth)."""
_LEARNING = 0.2  # the weight of a new observation of what a request costs


class ToldLimit(NamedTuple):
    """What an answer's headers tell of one limit."""

    kind: str  # one of KINDS
    limit: float
    remaining: float
    reset: float  # seconds until nothing of it is used any more


def told_limits(headers: Mapping[str, str]) -> Iterator[ToldLimit]:
    """The limits that an answer's headers tell of; those that can't be read are passed over."""
    for kind in KINDS:
        for form in (f"x-ratelimit-{{}}-{kind}", f"anthropic-ratelimit-{kind}-{{}}"):
            texts = [headers.get(form.format(part)) for part in ("limit", "remaining", "reset")]
            if None in texts:
                continue
            try:
                limit, remaining = (float(text or "") for text in texts[:2])
                reset = seconds_until(texts[2] or "")
            except (ValueError, OverflowError):
                continue
            if 0 < limit <= MOST_UNITS and 0 <= remaining <= limit and reset <= LONGEST_RESET:
                yield ToldLimit(kind, limit, remaining, reset if reset >= SHORTEST_RESET else 0.0)


def seconds_until(text: str) -> float:
    """The seconds that a header names: ``6m0s``, ``17ms``, ``1.5``, or a date and time in ISO's form.

    Raises:
        ValueError, OverflowError: it is none of these, or beyond what can be counted.
    """
    parts = _DURATION.findall(text)
    if parts and _DURATION.sub("", text) == "":
        return sum(float(number) * _SECONDS[unit] for number, unit in parts)
    try:
        seconds = float(text)
    except ValueError:
        when = datetime.fromisoformat(text) + timedelta(seconds=0.5)  # told in whole seconds
        seconds = ((when if when.tzinfo else when.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds()
    if not isfinite(seconds):
        raise ValueError(text)
    return max(seconds, 0.0)


class Budget:
    """One limit of a server, as its latest answer told of it, and what was sent since.

    A server counts a request when it comes in, so an answer tells of the time at which its request was sent: of the
    requests before it, and of none after it. From then on the budget refills at the rate at which the server says that
    it does: what is used is there again after ``reset``. Servers that count by windows of time give everything back at
    once at the window's end; they are known by a refusal that wants to be asked again no sooner than then.

    Args:
        kind: one of :data:`KINDS`.
        pending: number and time of the requests that were sent before anything was known.

    Attributes:
        cost: units that a request takes: 1 of a limit on requests, the mean of late of a limit on tokens.
    """

    def __init__(self, kind: str, pending: Iterable[tuple[int, float]] = ()) -> None:
        self.kind = kind
        self.cost = 1.0 if kind == "requests" else 0.0
        self._told: ToldLimit | None = None
        self._number, self._told_at = -1, 0.0  # of the request whose answer told of it last, and when it was sent
        self._rate = 0.0  # units a second that it refills by
        self._level, self._at = 0.0, 0.0  # what is left of it, and since when
        self._pending = deque(pending)  # number and time of the requests that were sent since
        self._by_windows, self._window, self._resets_at = False, 0.0, 0.0

    def sent(self, number: int, at: float) -> None:
        """Take notice that a request was sent."""
        self._pending.append((number, at))
        self._spend(at)

    def update(self, told: ToldLimit, number: int, sent_at: float) -> None:
        """Take over what the answer to the request ``number``, sent at ``sent_at``, tells.

        Answers come in any order; an older one than the latest says nothing new.
        """
        if number <= self._number:
            return
        if self.kind != "requests":
            self._learn_cost(told, number, sent_at)
        used = told.limit - told.remaining
        if used >= 1 and told.reset > 0:  # what is told in whole units and seconds says little of less
            self._rate = used / told.reset
        self._window = max(self._window, told.reset)
        self._told, self._number, self._told_at = told, number, sent_at
        self._level, self._at, self._resets_at = told.remaining, sent_at, sent_at + told.reset
        while self._pending and self._pending[0][0] <= number:
            self._pending.popleft()
        for _, at in self._pending:
            self._spend(at)

    def _learn_cost(self, told: ToldLimit, number: int, sent_at: float) -> None:
        if self._told is None:
            self.cost = (told.limit - told.remaining) / (number + 1)
        elif told.limit == self._told.limit:
            refilled = min(told.limit, self._told.remaining + self._rate * (sent_at - self._told_at))
            each = max(0.0, refilled - told.remaining) / (number - self._number)
            self.cost += (each - self.cost) * (_LEARNING if self.cost else 1.0)

    def _spend(self, at: float) -> None:
        self._level, self._at = self._refilled(at) - self.cost, max(at, self._at)

    def _refilled(self, now: float) -> float:
        """What is left of it now, at a time after all that is known."""
        assert self._told is not None
        if self._by_windows:
            if now < self._resets_at:
                return self._level
            self._resets_at = now + self._window  # when the new window really ends, the next answer tells
            return self._told.limit
        return min(self._told.limit, self._level + self._rate * max(0.0, now - self._at))

    def refused(self, wait: float) -> None:
        """Take notice of a refusal that asks to wait so long, after what its headers tell was taken over.

        Where nothing is left until the end, the server counts by windows. Where a limit on tokens has some left, a
        request takes more than that.
        """
        assert self._told is not None
        if self.kind != "requests" and self._told.remaining < self._told.limit:
            self.cost = max(self.cost, self._told.remaining + 1)
        if self.exhausted and self._told.limit >= 2:
            self._by_windows = wait >= 0.8 * self._told.reset

    @property
    def exhausted(self) -> bool:
        """Whether the latest answer told of less than a request takes."""
        return self._told is not None and self._told.remaining < min(self.cost, self._told.limit)

    def wait(self) -> float:
        """Seconds until another request fits; 0 when one does, or nothing is known."""
        if self._told is None:
            return 0.0
        now = monotonic()
        short = min(self.cost, self._told.limit) - self._refilled(now)
        if short <= 1e-6:
            return 0.0
        if self._by_windows:
            return max(self._resets_at - now, 0.001)
        return short / (self._rate or self._told.limit)
