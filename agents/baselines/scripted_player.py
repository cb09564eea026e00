"""What the baselines have in common: an action and the reason for it, written as a language model would write it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

from agents.policy import as_requests
from agents.turn import Turn, TurnRequest


class Choice(NamedTuple):
    """An action and, in one sentence, why."""

    action: str
    reason: str


class ScriptedPlayer(ABC):
    """A :class:`~agents.turn.Policy` that computes its action.

    Attributes:
        name: what results call it.
    """

    name: str

    @abstractmethod
    def choose(self, request: TurnRequest) -> Choice:
        """The action for one request, and the reason."""

    @property
    def settings(self) -> dict[str, Any]:
        return {"kind": self.name}

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        """One turn per request, in order; the responses are in the form that language models are asked for."""
        return [self._turn(request) for request in as_requests(requests)]

    def _turn(self, request: TurnRequest) -> Turn:
        action, reason = self.choose(request)
        return Turn(f"<think>{reason}</think><plan>{action}</plan><action>{action}</action>")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
