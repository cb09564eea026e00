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
        headers: those of its answer, names in small letters, as soon as there is one.
    """

    __slots__ = ("headers",)

    def __init__(self) -> None:
        self.headers: Mapping[str, str] = {}


class Pacer:
    """Sends a server as many requests at once, and as fast, as it takes.

    There is no limit until the server refuses a request. What was refused goes first when there is room again.

    A refusal that names a time comes from a limit on the rate. Nothing is sent before that time, and then one request
    after the other, with a gap between them that grows by a tenth with each refusal and shrinks by three hundredths
    with each request that had to wait for it: so the rate settles at what the server takes.

    A refusal that names none is taken for a limit on requests in flight. Their number falls to those that the server
    goes on working on, and each time that as many have been answered, one more is tried. Where it works on none, the
    next request is sent after a back-off.

    Args:
        patience: the seconds that are waited in all while the server takes no request whatever.
    """

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.in_flight = 0
        self.limit = inf  # of the number in flight
        self.gap = 0.0  # seconds between two requests
        self._opens_at = self._slowed_at = 0.0  # on the monotonic clock, as all times here
        self._refused_since: float | None = None
        self._pauses = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def send(self, request: Callable[[Sent], Awaitable[T]]) -> T:
        """What ``request(sent)`` returns. It is called when there is room, and again after it was refused.

        Raises:
            ProviderError: refused for longer than the patience lasts, or whatever else ``request()`` raises.
        """
        refused = False
        while True:
            await self._enter(first=refused)
            sent_at = monotonic()
            try:
                answer = await request(Sent())
                self.limit += 1 / self.limit
                self._refused_since, self._pauses = None, 0
                return answer
            except TooManyRequestsError as refusal:
                refused = True
                self._slow_down(refusal, sent_at)
            finally:
                self.in_flight -= 1
                self._admit()

    def _slow_down(self, refusal: TooManyRequestsError, sent_at: float) -> None:
        now, others_in_flight = monotonic(), self.in_flight - 1
        self._refused_since = now if self._refused_since is None else self._refused_since
        if refusal.wait is not None:
            # the back-off matters only where a server names too short a time again and again
            wait = max(refusal.wait, back_off(self._pauses, first=0.001))
            if sent_at >= self._slowed_at:  # the others of a wave that was refused say nothing new
                self.gap = self.gap * 1.1 if self.gap else min(wait, LONGEST_FIRST_GAP)
                self._pauses, self._slowed_at = self._pauses + 1, now
                self._opens_at = 0.0  # the gap behind a refused request needn't be kept
        else:
            wait = 0.0 if others_in_flight else back_off(self._pauses, FIRST_BACK_OFF)
            self._pauses += not others_in_flight
            self.limit = max(1, min(self.limit, others_in_flight))
        if now + wait - self._refused_since > self.patience:
            raise ProviderError(f"{refusal} (no request was taken within {self.patience:g} s)", may_pass=False)
        self._opens_at = max(self._opens_at, now + wait)

    async def _enter(self, *, first: bool) -> None:
        """Wait for room, before the others or behind them, and take it."""
        if not self._waiting and self.in_flight < self.limit and monotonic() >= self._opens_at:
            self.in_flight += 1
            self._opens_at = monotonic() + self.gap
            return
        place = asyncio.get_running_loop().create_future()
        (self._waiting.appendleft if first else self._waiting.append)(place)
        self._admit()
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():  # it was given room in the same moment
                self.in_flight -= 1
                self._admit()
            raise

    def _admit(self) -> None:
        """Give room to those who wait, as far as there is any; when it is too early, once it isn't."""
        while self._waiting and self.in_flight < self.limit:
            pause = self._opens_at - monotonic()
            if pause > 0:
                if self._timer is not None:
                    self._timer.cancel()
                self._timer = asyncio.get_running_loop().call_later(pause, self._admit)
                return
            place = self._waiting.popleft()
            if not place.done():
                self.in_flight += 1
                self._opens_at = monotonic() + self.gap
                self.gap *= 0.97
                place.set_result(None)


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
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max((when - datetime.now(UTC)).total_seconds(), 0.0)
