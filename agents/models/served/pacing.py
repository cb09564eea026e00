"""When a request is sent: how many a server works on at once, and when it is asked again after it refused one."""

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import inf, isfinite
from time import monotonic
from typing import TypeVar

from agents.models.served.answers import ProviderError
from agents.models.served.limits import Budget, told_limits

T = TypeVar("T")

FIRST_BACK_OFF, LONGEST_BACK_OFF = 0.5, 8.0  # seconds
LONGEST_FIRST_GAP = 0.5
"""Seconds. A server that counts by the minute names the rest of the minute, which is no gap between two requests."""


class TooManyRequestsError(ProviderError):
    """The server took a request for one too many.

    Attributes:
        wait: seconds after which it wants to be asked again, where it says so.
    """

    def __init__(self, message: str, wait: float | None) -> None:
        super().__init__(message)
        self.wait = wait


class Sent:
    """One request on its way.

    Attributes:
        number: how many the pacer had sent before it.
        at: when it was sent, on the monotonic clock.
        beside: how many others were in flight then.
        beyond: the kinds of limits that it should have waited for longer than anybody has patience for.
        headers: those of its answer, names in small letters, as soon as there is one.
    """

    __slots__ = ("at", "beside", "beyond", "headers", "number")

    def __init__(self, number: int, beside: int, beyond: frozenset[str] = frozenset()) -> None:
        self.number, self.at, self.beside, self.beyond = number, monotonic(), beside, beyond
        self.headers: Mapping[str, str] = {}


class Pacer:
    """Sends a server as many requests at once, and as fast, as it takes.

    Where a server tells of its limits (:mod:`agents.models.served.limits`), a request leaves when there is one left
    and as many tokens as requests have taken of late. A wait that would be longer than the patience isn't waited for:
    one request is sent to see. Where it is refused, the refusal counts; where it is taken, that limit isn't believed
    any more.

    Else there is no limit until the server refuses a request. What was refused goes first when there is room again.

    A refusal that names a time comes from a limit on the rate. Nothing is sent before that time. Where the server tells
    nothing of its limits, one request leaves after the other from then on. The gap between them is the named time at
    first; it shrinks by a tenth with each answer until the next refusal, then by a twentieth a second, and grows by a
    twentieth with each wave of refusals: so the rate settles at what the server takes. A time that is much longer than
    the gap is the end of a window, until which nothing is taken: it says nothing of the gap.

    A refusal that names none is taken for a limit on requests in flight. Their number falls to those that the server
    goes on working on, and each time that as many have been answered, one more is tried. Where it works on none, the
    next request is sent after a back-off. A server that is overloaded (it answers with 502, 503 or 504, or not in time)
    gets half as many at once, and more again in the same way.

    Args:
        patience: the seconds that are waited in all while the server takes no request whatever.
    """

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.in_flight = 0
        self.limit = inf  # of the number in flight
        self.gap = 0.0  # seconds between two requests
        self.budgets: dict[str, Budget] = {}
        self._disbelieved: set[str] = set()  # kinds of limits that a request was taken beyond
        self._sent = self._taken = 0  # requests so far, and those that were answered since it opened last
        self._recent: deque[tuple[int, float]] = deque(maxlen=4096)  # number and time of the latest requests
        self._searches, self._shrunk_at = True, 0.0  # whether the gap is still far from what it should be
        self._opens_at = self._slowed_at = 0.0  # on the monotonic clock, as all times here
        self._refused_since: float | None = None
        self._pauses = 0
        self._waiting: deque[asyncio.Future[Sent]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def send(self, request: Callable[[Sent], Awaitable[T]]) -> T:
        """What ``request(sent)`` returns. It is called when there is room, and again after it was refused.

        Raises:
            ProviderError: refused for longer than the patience lasts, or whatever else ``request()`` raises.
        """
        refused = False
        while True:
            sent = await self._enter(first=refused)
            try:
                answer = await request(sent)
                self._disbelieve(sent.beyond)
                self.limit += 1 / self.limit
                self._speed_up()
                self._refused_since, self._pauses = None, 0
                return answer
            except TooManyRequestsError as refusal:
                refused = True
                self._note_limits(sent)
                self._slow_down(refusal, sent)
            except ProviderError as failure:
                if failure.overloaded and sent.at >= self._slowed_at:  # the others of a wave say nothing new
                    self.limit, self._slowed_at = max(1, self.in_flight // 2), monotonic()
                raise
            finally:
                self._note_limits(sent)
                self.in_flight -= 1
                self._admit()

    def _disbelieve(self, kinds: frozenset[str]) -> None:
        self._disbelieved |= kinds
        for kind in kinds:
            self.budgets.pop(kind, None)

    def _note_limits(self, sent: Sent) -> None:
        for told in told_limits(sent.headers):
            if told.kind in self._disbelieved:
                continue
            if told.kind not in self.budgets:
                self.budgets[told.kind] = Budget(told.kind, self._recent)
            self.budgets[told.kind].update(told, sent.number, sent.at)

    def _slow_down(self, refusal: TooManyRequestsError, sent: Sent) -> None:
        now, others_in_flight = monotonic(), self.in_flight - 1
        self._refused_since = now if self._refused_since is None else self._refused_since
        if refusal.wait is not None:
            # the back-off matters only where a server names too short a time again and again
            wait = max(refusal.wait, back_off(self._pauses, first=0.001))
            exhausted = [budget for budget in self.budgets.values() if budget.exhausted]
            for budget in exhausted or self.budgets.values():  # the limit that was the reason, where that is seen
                budget.refused(refusal.wait)
            if sent.at >= self._slowed_at:  # the others of a wave that was refused say nothing new
                if not self.budgets:
                    self._widen_gap(refusal.wait)
                self._pauses, self._slowed_at, self._taken = self._pauses + 1, now, 0
                self._opens_at = 0.0  # the gap behind a refused request needn't be kept
        else:
            wait = 0.0 if others_in_flight else back_off(self._pauses, FIRST_BACK_OFF)
            self._pauses += not others_in_flight
            self.limit = max(1, min(self.limit, sent.beside))
        if now + wait - self._refused_since > self.patience:
            raise ProviderError(f"{refusal} (no request was taken within {self.patience:g} s)", may_pass=False)
        self._opens_at = max(self._opens_at, now + wait)

    def _widen_gap(self, wait: float) -> None:
        if not self.gap:
            self.gap, self._searches = min(max(wait, 0.001), LONGEST_FIRST_GAP), True
        elif wait > 3 * self.gap + 0.1:  # a window's end; if hardly anything was taken since the last, a long gap
            self.gap *= 2 if self._taken < 3 and self.gap < wait else 1
        elif self._searches:
            self.gap, self._searches = max(self.gap, wait), False
        else:
            self.gap *= 1.05
        self._shrunk_at = monotonic()

    def _speed_up(self) -> None:
        """Take notice that a request was taken."""
        self._taken += 1
        now = monotonic()
        if self._taken > 40 and now - self._slowed_at > 2:  # the limit may be gone
            self._searches = True
        if self._searches:
            self.gap *= 0.9
        else:
            self.gap *= 0.95 ** min(1.0, now - self._shrunk_at)
        self._shrunk_at = now

    def _pause(self) -> float:
        """Seconds until another request may leave, as far as that is known; infinite where an answer has to come first.

        A told limit that would have requests wait for longer than the patience is tried out with one request.
        """
        waits = [budget.wait() for budget in self.budgets.values()]
        told = max(waits, default=0.0)
        if told > self.patience:
            told = inf if self.in_flight else max((wait for wait in waits if wait <= self.patience), default=0.0)
        return max(self._opens_at - monotonic(), told, 0.0)

    def _depart(self) -> Sent:
        """Take the room for one request."""
        self.in_flight += 1
        beyond = frozenset(kind for kind, budget in self.budgets.items() if budget.wait() > self.patience)
        sent = Sent(self._sent, self.in_flight - 1, beyond)
        self._sent += 1
        self._recent.append((sent.number, sent.at))
        for budget in self.budgets.values():
            budget.sent(sent.number, sent.at)
        self._opens_at = max(self._opens_at, sent.at + self.gap)
        return sent

    async def _enter(self, *, first: bool) -> Sent:
        """Wait for room, before the others or behind them, and take it."""
        if not self._waiting and self.in_flight < self.limit and self._pause() <= 0:
            return self._depart()
        place: asyncio.Future[Sent] = asyncio.get_running_loop().create_future()
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
        """Give room to those who wait, as far as there is any; when it is too early, once it isn't."""
        while self._waiting and self.in_flight < self.limit:
            pause = self._pause()
            if pause == inf:  # the next answer tells
                return
            if pause > 0:
                if self._timer is not None:
                    self._timer.cancel()
                self._timer = asyncio.get_running_loop().call_later(pause, self._admit)
                return
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(self._depart())


def back_off(failures: int, first: float) -> float:
    """Seconds until the next attempt after ``failures`` others: doubling, with jitter against marching in step."""
    return min(first * 2.0 ** min(failures, 100), LONGEST_BACK_OFF) * (1 - 0.25 * random.random())


def named_wait(headers: Mapping[str, str]) -> float | None:
    """The seconds that an answer's headers ask to wait: ``retry-after-ms``, or ``Retry-After`` in seconds or as a date.

    ``None`` where they name none or nothing that can be read.
    """
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
