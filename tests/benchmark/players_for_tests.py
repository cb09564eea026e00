"""Players that go wrong on purpose; loaded by the tests as ``players_for_tests.py:NAME``."""

import os
import signal
import time

from agents.turn import Turn, Usage

RIGHT = "<action>right</action>"


class Always:
    """Goes right, and says what a model would cost."""

    name = "always-right"

    def act(self, requests):
        return [Turn(RIGHT, usage=Usage(1000, 100)) for _ in requests]


class Broken:
    """A provider that is down on every third episode, with a key in its message."""

    name = "broken"

    def act(self, requests):
        down = os.environ.get("PROVIDER_DOWN") == "1"
        return [self._turn(request, down and request.seed[0] % 3 == 0) for request in requests]

    def _turn(self, request, fails):
        if fails:
            key = os.environ.get("OPENAI_API_KEY", "none")
            return Turn("", finish_reason="error", error=f"status 500 after 3 attempts (key {key})")
        return Turn(RIGHT)


class Dead:
    """A provider that never answers."""

    name = "dead"

    def act(self, requests):
        return [Turn("", finish_reason="error", error="connection refused") for _ in requests]


class Babbler:
    """Answers that can't be read, in several ways."""

    name = "babbler"
    answers = ("", "I go right", "<action>right", "<action>fly</action>", RIGHT + RIGHT, RIGHT, "\x1b[31mred\x1b[0m")

    def act(self, requests):
        return [Turn(self.answers[sum(request.seed) % len(self.answers)]) for request in requests]


class Interrupted:
    """Somebody presses Ctrl-C in the middle, once."""

    name = "interrupted"

    def act(self, requests):
        if os.environ.get("PRESS_CTRL_C") and any(request.seed[0] % 10 == 5 for request in requests):
            os.kill(os.getpid(), getattr(signal, os.environ["PRESS_CTRL_C"]))
        return [Turn(RIGHT) for _ in requests]


class Slow:
    """The random player, taking its time, so that a run can be killed in the middle."""

    name = "slow"

    def __init__(self):
        from agents.baselines.random import RandomPlayer

        self._random = RandomPlayer()

    def act(self, requests):
        time.sleep(0.004)
        return self._random.act(requests)


class Buggy:
    """Fails in its own code, at the fourth episode."""

    name = "buggy"

    def act(self, requests):
        if any(request.seed[0] % 10 == 3 for request in requests):
            raise ZeroDivisionError("in the player's own code")
        return [Turn(RIGHT) for _ in requests]
