"""The base of the baselines: an action and its reason, written as a language model would write it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

from agents.policy import as_requests
from agents.turn import Turn, TurnRequest


class Choice(NamedTuple):
    """An action and, in one sentence, why."""

    action: str
    reason: str


def as_turn(choice: Choice) -> Turn:
    """Write a choice in the form that language models are asked for."""
    action, why = choice
    return Turn(f"<think>{why}</think><plan>{action}</plan><action>{action}</action>")


class ScriptedPlayer(ABC):
    """A :class:`~agents.turn.Policy` that computes its action."""

    name: str

    @abstractmethod
    def choose(self, request: TurnRequest) -> Choice:
        """Return the action for one request, and the reason."""

    def choices(self, request: TurnRequest) -> Sequence[Choice]:
        """Return all actions that are as good to :meth:`choose`; by default its own alone."""
        return (self.choose(request),)

    def action_probabilities(self, request: TurnRequest) -> dict[str, float] | None:
        """Return ``{action: probability}`` with which :meth:`choose` chooses; ``None`` if it isn't known."""
        return None

    @property
    def settings(self) -> dict[str, Any]:
        return {"kind": self.name}

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        return [as_turn(self.choose(request)) for request in as_requests(requests)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
