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
    usage = Usage(1000, 100)

    def act(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        return Turn(RIGHT, usage=self.usage)


class Absurd(Always):
    """Counts more tokens than there are, on every third episode."""

    name = "absurd"

    def answer(self, request):
        return Turn(RIGHT, usage=Usage(10**12 if request.seed[0] % 3 == 0 else 7, 1))


class Copied:
    """Plays as the planner does, and says more."""

    name = "copied"

    def __init__(self):
        self._planner = load_agent("planner")

    def act(self, requests):
        return [replace(turn, response=f"Let me think. {turn.response}") for turn in self._planner.act(requests)]


class Broken(Always):
    """A provider that is down on every third episode, with a key in its message."""

    name = "broken"

    def answer(self, request):
        if os.environ.get("PROVIDER_DOWN") == "1" and request.seed[0] % 3 == 0:
            key = os.environ.get("OPENAI_API_KEY", "none")
            return Turn("", finish_reason="error", error=f"status 500 after 3 attempts (key {key})")
        return Turn(RIGHT)


class Dead(Always):
    """A provider that never answers."""

    name = "dead"

    def answer(self, request):
        return Turn("", finish_reason="error", error="connection refused")


class Babbler(Always):
    """Answers that can't be read, in several ways."""

    name = "babbler"
    answers = ("", "I go right", "<action>right", "<action>fly</action>", RIGHT + RIGHT, RIGHT, "\x1b[31mred\x1b[0m")

    def answer(self, request):
        return Turn(self.answers[sum(request.seed) % len(self.answers)])


class Mute(Always):
    """Answers nothing that can be read."""

    name = "mute"
    settings = {"kind": "mute"}  # noqa: RUF012 - plain data, as in every player

    def answer(self, request):
        return Turn("I would rather not say", usage=Usage(10, 5))


class Hesitant(Always):
    """Writes an action that can be read when it has been told often enough what was wrong.

    How often depends on the board alone: 0 to 3 times.
    """

    name = "hesitant"
    settings = {"kind": "hesitant"}  # noqa: RUF012

    def answer(self, request):
        wanted = sum(request.observation.encode()) % 4
        if len(request.refused) < wanted:
            text = ("", "<action>fly</action>", "no tag")[len(request.refused)]
        else:
            text = f"<action>{request.legal_actions[len(request.observation) % len(request.legal_actions)]}</action>"
        return Turn(text, usage=Usage(100 + len(request.refused), 7))


class Interrupted(Always):
    """Somebody presses Ctrl-C in the middle, once."""

    name = "interrupted"

    def answer(self, request):
        if os.environ.get("PRESS_CTRL_C") and request.seed[0] % 10 == 5:
            os.kill(os.getpid(), getattr(signal, os.environ["PRESS_CTRL_C"]))
        return Turn(RIGHT)


class Buggy(Always):
    """Fails in its own code, at the fourth episode."""

    name = "buggy"

    def answer(self, request):
        if request.seed[0] % 10 == 3:
            raise ZeroDivisionError("in the player's own code")
        return Turn(RIGHT)


class Slow:
    """The random player, taking its time, so that a run can be killed in the middle."""

    name = "slow"
    pause = 0.004

    def __init__(self):
        self._random = load_agent("random")

    def act(self, requests):
        time.sleep(self.pause)
        return self._random.act(requests)


class Slower(Slow):
    """Slow enough for something to happen to it in the middle, and it notes which processes have played."""

    pause = 0.03

    def act(self, requests):
        Path("who_played").mkdir(exist_ok=True)
        Path("who_played", str(os.getpid())).touch()
        return super().act(requests)


class Thinking(Slow):
    """The random player behind a server that takes its time."""

    async def act_async(self, request):
        await asyncio.sleep(0.03)
        (turn,) = self._random.act([request])
        return replace(turn, usage=Usage(1000, 100))


class Fatal(Always):
    """Kills the process that it is in, always at the same episode."""

    name = "fatal"

    def answer(self, request):
        if request.seed[0] % 10 == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return Turn(RIGHT)


class OfThisMachine(Always):
    """A player whose settings say which process made it: another one on every worker."""

    name = "of-this-machine"

    def __init__(self):
        self.settings = {"process": os.getpid()}


class TellsSecrets(Always):
    """Repeats whatever its machine's environment calls a key."""

    name = "tells-secrets"

    def answer(self, request):
        secrets = [value for name, value in os.environ.items() if name.endswith("_KEY")]
        return Turn(f"{secrets} {RIGHT}")
