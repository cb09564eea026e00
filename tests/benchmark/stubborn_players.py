"""Players that don't answer as they should, for tests of the protocols."""

from agents.turn import Turn, Usage


class Mute:
    """Answers nothing that can be read."""

    name = "mute"
    settings = {"kind": "mute"}  # noqa: RUF012 - plain data, as in every player

    def act(self, requests):
        return [Turn("I would rather not say", usage=Usage(10, 5)) for _ in requests]


class Hesitant:
    """Writes an action that can be read when it has been told often enough what was wrong.

    How often depends on the board alone: 0 to 3 times.
    """

    name = "hesitant"
    settings = {"kind": "hesitant"}  # noqa: RUF012

    def act(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        wanted = sum(request.observation.encode()) % 4
        if len(request.refused) < wanted:
            text = ("", "<action>fly</action>", "no tag")[len(request.refused)]
        else:
            text = f"<action>{request.legal_actions[len(request.observation) % len(request.legal_actions)]}</action>"
        return Turn(text, usage=Usage(100 + len(request.refused), 7))
