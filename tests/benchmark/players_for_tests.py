"""Players that go wrong on purpose; loaded by the tests as ``players_for_tests.py:NAME``."""

import asyncio
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

from agents.load import load_agent
from agents.turn import Turn, Usage

RIGHT = "<action>right</action>"


class Always:
    """Goes right, and says what a model would cost."""

    name = "always-right"

    def act(self, requests):
        return [Turn(RIGHT, usage=Usage(1000, 100)) for _ in requests]


class Absurd:
    """Counts more tokens than there are, on every third episode."""

    name = "absurd"

    def act(self, requests):
        return [Turn(RIGHT, usage=Usage(10**12 if request.seed[0] % 3 == 0 else 7, 1)) for request in requests]


class Copied:
    """Plays as the planner does, and says more."""

    name = "copied"

    def __init__(self):
        self._planner = load_agent("planner")

    def act(self, requests):
        return [replace(turn, response=f"Let me think. {turn.response}") for turn in self._planner.act(requests)]


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


class Slower(Slow):
    """Slow enough for something to happen to it in the middle, and it notes which processes have played."""

    def act(self, requests):
        time.sleep(0.03)
        Path("who_played").mkdir(exist_ok=True)
        Path("who_played", str(os.getpid())).touch()
        return self._random.act(requests)


class Thinking(Slow):
    """The random player behind a server that takes its time."""

    async def act_async(self, request):
        await asyncio.sleep(0.03)
        (turn,) = self._random.act([request])
        return replace(turn, usage=Usage(1000, 100))


class Fatal:
    """Kills the process that it is in, always at the same episode."""

    name = "fatal"

    def act(self, requests):
        if any(request.seed[0] % 10 == 3 for request in requests):
            os.kill(os.getpid(), signal.SIGKILL)
        return [Turn(RIGHT) for _ in requests]


class OfThisMachine:
    """A player whose settings say which process made it: another one on every worker."""

    name = "of-this-machine"

    def __init__(self):
        self.settings = {"process": os.getpid()}

    def act(self, requests):
        return [Turn(RIGHT) for _ in requests]


class TellsSecrets:
    """Repeats whatever its machine's environment calls a key."""

    name = "tells-secrets"

    def act(self, requests):
        secrets = [value for name, value in os.environ.items() if name.endswith("_KEY")]
        return [Turn(f"{secrets} {RIGHT}") for _ in requests]
