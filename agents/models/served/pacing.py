"""When a request is sent: how many a server works on at once, and when it is asked again after it refused one.

Libraries that limit rates (aiolimiter, pyrate-limiter) have to be told it; here it is found by the refusals.
"""

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import inf, isfinite
from time import monotonic
from typing import Generic, TypeVar

from agents.models.served.answers import ProviderError

T = TypeVar("T")


class PerLoop(Generic[T]):
    """One value for every event loop that asks for it; those of closed loops are forgotten."""

    def __init__(self) -> None:
        self._kept: dict[asyncio.AbstractEventLoop, T] = {}

    def get(self, make: Callable[[], T]) -> T:
        """Return the running loop's value, made when it is first asked for."""
        loop = asyncio.get_running_loop()
        if loop not in self._kept:
            self._kept = {known: kept for known, kept in self._kept.items() if not known.is_closed()}
            self._kept[loop] = make()
        return self._kept[loop]

    def pop(self) -> T | None:
        """Forget the running loop's value, and return it; ``None`` if there is none."""
        return self._kept.pop(asyncio.get_running_loop(), None)


FIRST_BACK_OFF, LONGEST_BACK_OFF = 0.5, 8.0  # seconds


class TooManyRequestsError(ProviderError):
    """The server refused a request as one too many; ``wait`` are the seconds until the next, if it names them."""

    def __init__(self, message: str, wait: float | None) -> None:
        super().__init__(message)
        self.wait = wait


class Pacer:
    """Sends a server as many requests at once as it takes, and none before the time that it names.

    There is no limit until the server refuses a request; refused requests go first when there is room again. Limits are
    found as TCP finds that of a network: each answer lets one more request be in flight up to a threshold, and beyond
    it as many answers as there are requests in flight.

    A refusal that names a time closes the door until then; one request goes first after it, and the threshold is nine
    tenths of the number in flight. Without a time, their number falls to those that the server still works on; if there
    are none, the next is sent after a back-off. An overloaded server (502, 503, 504, or not in time) gets half as many.

    ``patience`` are the seconds that are waited in all while the server takes no request whatever.
    """

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.in_flight = 0
        self.limit = self._threshold = inf  # of the number in flight
        self._opens_at = self._lowered_at = 0.0  # on the monotonic clock
        self._refused_since: float | None = None  # with nothing taken in between
        self._pauses = 0
        self._waiting: deque[asyncio.Future[tuple[float, int]]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def send(self, request: Callable[[], Awaitable[T]]) -> T:
        """Return the result of ``request()``, called when there is room, and again after it was refused; a
        ProviderError when the patience is over."""
        refused = False
        while True:
            sent_at, beside = await self._enter(first=refused)
            try:
                answer = await request()
                self.limit += 1 if self.limit < self._threshold else 1 / self.limit
                self._refused_since, self._pauses = None, 0
                return answer
            except TooManyRequestsError as refusal:
                refused = True
                self._slow_down(refusal, sent_at, beside)
            except ProviderError as failure:
                if failure.overloaded and self._is_new(sent_at):
                    self.limit = self._threshold = max(1.0, self.in_flight // 2)
                raise
            finally:
                self.in_flight -= 1
                self._admit()

    def _is_new(self, sent_at: float) -> bool:
        """Report whether a failure is the first of its wave: the others were sent before, and tell nothing new."""
        if sent_at < self._lowered_at:
            return False
        self._lowered_at = monotonic()
        return True

    def _slow_down(self, refusal: TooManyRequestsError, sent_at: float, beside: int) -> None:
        now, alone = monotonic(), self.in_flight == 1
        if refusal.wait is not None:
            # the back-off matters only if a server names too short a time again and again
            wait = max(refusal.wait, back_off(self._pauses, first=0.001))
            if self._is_new(sent_at):
                self._threshold, self.limit = max(1.0, 0.9 * min(self.limit, self.in_flight)), 1.0
                self._pauses += 1
        else:
            wait = back_off(self._pauses, FIRST_BACK_OFF) if alone else 0.0
            self._pauses += alone
            self.limit = self._threshold = max(1.0, min(self.limit, beside))
        self._refused_since = now if self._refused_since is None else self._refused_since
        if now + wait - self._refused_since > self.patience:
            raise ProviderError(f"{refusal} (no request was taken within {self.patience:g} s)", may_pass=False)
        self._opens_at = max(self._opens_at, now + wait)

    async def _enter(self, *, first: bool) -> tuple[float, int]:
        """Wait for room, before the others or behind them, and take it; return the time and the number in flight."""
        place: asyncio.Future[tuple[float, int]] = asyncio.get_running_loop().create_future()
        (self._waiting.appendleft if first else self._waiting.append)(place)
        self._admit()
        try:
            return await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():  # it was given room in the same moment
                self.in_flight -= 1
                self._admit()
            raise

    def _admit(self) -> None:
        """Give room to waiting requests, as far as there is any; if it is too early, once it isn't."""
        while self._waiting and self.in_flight + 1 <= self.limit:
            if (pause := self._opens_at - monotonic()) > 0:
                if self._timer is not None:
                    self._timer.cancel()
                self._timer = asyncio.get_running_loop().call_later(pause, self._admit)
                return
            place = self._waiting.popleft()
            if not place.done():
                place.set_result((monotonic(), self.in_flight))
                self.in_flight += 1


def back_off(failures: int, first: float) -> float:
    """Return seconds until the next attempt after ``failures`` others: doubling, with jitter."""
    return min(first * 2.0 ** min(failures, 100), LONGEST_BACK_OFF) * (1 - 0.25 * random.random())


def named_wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that ``retry-after-ms`` or ``Retry-After`` (seconds or a date) names, if it can be read."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if isfinite(seconds):
            return max(seconds, 0.0)
    try:
        when = parsedate_to_datetime(headers.get("retry-after", ""))
        when = when if when.tzinfo else when.replace(tzinfo=UTC)
        return max((when - datetime.now(UTC)).total_seconds(), 0.0)
    except (ValueError, TypeError, IndexError, OverflowError):  # OverflowError: a year beyond what a computer counts in
        return None
