"""The limits of the local server: buckets that fill up, and windows that begin anew, with the headers of each."""

import time
from datetime import UTC, datetime, timedelta

STYLES = ("none", "openai", "anthropic")
"""Which headers tell of a limit: only ``Retry-After`` of a refusal; OpenAI's; Anthropic's."""


class Bucket:
    """A number of units that fills up at a rate, as OpenAI counts.

    Args:
        per_minute: the rate.
        burst: what it holds.
    """

    def __init__(self, per_minute: float, burst: float) -> None:
        self.rate, self.size = per_minute / 60, burst
        self.left, self._at = float(burst), time.monotonic()

    def update(self) -> None:
        now = time.monotonic()
        self.left, self._at = min(self.size, self.left + (now - self._at) * self.rate), now

    def wait(self, units: float) -> float:
        self.update()
        return max(0.0, (min(units, self.size) - self.left) / self.rate)

    def take(self, units: float) -> None:
        self.left -= units

    def reset(self) -> float:
        self.update()
        return (self.size - self.left) / self.rate


class Window(Bucket):
    """A number of units that is there anew at the beginning of every window.

    Args:
        units: of a window.
        seconds: its length.
    """

    def __init__(self, units: float, seconds: float) -> None:
        super().__init__(units * 60 / seconds, units)
        self.seconds, self._ends = seconds, time.monotonic() + seconds

    def update(self) -> None:
        now = time.monotonic()
        if now >= self._ends:
            self.left = self.size
            self._ends += self.seconds * (1 + (now - self._ends) // self.seconds)

    def wait(self, units: float) -> float:
        self.update()
        return 0.0 if self.left >= units else self._ends - time.monotonic()

    def reset(self) -> float:
        self.update()
        return self._ends - time.monotonic()


def headers_of(style: str, kind: str, bucket: Bucket) -> str:
    """The headers that tell of a limit on ``"requests"`` or ``"tokens"``."""
    bucket.update()
    limit, left, reset = int(bucket.size), max(0, int(bucket.left)), bucket.reset()
    if style == "openai":
        values = {f"limit-{kind}": limit, f"remaining-{kind}": left, f"reset-{kind}": openai_duration(reset)}
        return "".join(f"x-ratelimit-{name}: {value}\r\n" for name, value in values.items())
    if style == "anthropic":
        when = (datetime.now(UTC) + timedelta(seconds=reset)).isoformat(timespec="seconds").replace("+00:00", "Z")
        values = {f"{kind}-limit": limit, f"{kind}-remaining": left, f"{kind}-reset": when}
        return "".join(f"anthropic-ratelimit-{name}: {value}\r\n" for name, value in values.items())
    return ""


def openai_duration(seconds: float) -> str:
    """As OpenAI writes it: ``17ms``, ``1.234s``, ``6m0s``."""
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    minutes, rest = divmod(round(seconds, 3), 60)
    return (f"{int(minutes)}m" if minutes else "") + f"{rest:g}s"
