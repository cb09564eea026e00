"""Players as an installed package adds them: three around others, and one that plays the action in a file."""

from dataclasses import replace
from pathlib import Path

from agents.load import Baseline
from agents.policy import as_requests
from agents.turn import Turn
from agents.wrappers import Around, Question, Wrapper


class Many(Around):
    """Asks a player so many times, and plays its first answer."""

    def __init__(self, inner, *, times: int = 8):
        super().__init__("many", inner)
        self.times = times

    @classmethod
    def asks(cls, players, options):
        return (int(options["times"]),)

    @property
    def settings(self):
        return {"times": self.times}

    def decide(self, request):
        turns = yield [Question(request) for _ in range(self.times)]
        return turns[0]


class Either(Around):
    """Asks the first of its players."""

    def __init__(self, first, second):
        super().__init__("either", first, second)

    def decide(self, request):
        (turn,) = yield [Question(request)]
        return turn


class Told(Around):
    """Asks a player that reads what another one has answered."""

    def __init__(self, player, teller):
        super().__init__("told", player, teller)

    def decide(self, request):
        (told,) = yield [Question(request, 1, words=True)]
        (turn,) = yield [Question(replace(request, observation=f"{request.observation}\n\n{told.response}"))]
        return turn


class Script:
    """Plays the action in a file."""

    def __init__(self, file: str, *, seconds: float = 1.0, key: str | None = None):
        self.name, self._action = f"script:{Path(file).name}", Path(file).read_text()

    def act(self, requests):
        return [Turn(self._action) for _ in as_requests(requests)]


MANY = Wrapper("added_players:Many", "asks many times")
EITHER = Wrapper("added_players:Either", "asks the first", 2, 1)
TOLD = Wrapper("added_players:Told", "reads another's answer", 2, tells_more=True)
SCRIPT = Baseline(
    "added_players:Script", "plays what a file says", ("seconds", "key"), takes="FILE", holds=lambda: True
)
