"""Asking a player, which may be a user's own class, for its turns."""

from collections.abc import Sequence
from inspect import iscoroutine
from typing import TYPE_CHECKING, Any, Protocol

from agents.turn import Policy, Turn, TurnRequest

if TYPE_CHECKING:
    from agents.episode import EpisodeTask


class AnswerStore(Protocol):
    """Keeps the answers of players behind servers when they arrive, so that no decision is asked and paid for twice."""

    def recall(self, task: "EpisodeTask", request: TurnRequest) -> Turn | None:
        """Return the answer that an earlier process got to a decision of an episode; ``None`` if there is none."""

    def keep(self, task: "EpisodeTask", request: TurnRequest, turn: Turn) -> None:
        """Keep an answer that has just arrived."""


def ask(policy: Policy, requests: Sequence[TurnRequest]) -> Sequence[Turn]:
    """Ask a policy for one turn a request; a TypeError or a RuntimeError says how it answered and what is accepted."""
    turns: Any = policy.act(requests)
    if iscoroutine(turns):
        turns.close()
    if isinstance(turns, str) or not isinstance(turns, Sequence):
        raise TypeError(
            f"{policy.name}.act returned a {type(turns).__name__}; accepted: a list, an agents.Turn(response) for each "
            "request; for asynchronous answers define async def act_async(request) beside act; it returns one Turn"
        )
    if len(turns) != len(requests):
        raise RuntimeError(f"{policy.name} returned {len(turns)} turns for {len(requests)} requests")
    for turn in turns:
        check_turn(policy, turn)
    return turns


def check_turn(policy: Policy, turn: Any) -> None:
    """Raise a TypeError for anything but a turn with a response; it names the player and what is accepted."""
    if not isinstance(turn, Turn) or not isinstance(turn.response, str):
        got = f"Turn({turn.response!r})" if isinstance(turn, Turn) else f"a {type(turn).__name__}"
        raise TypeError(f"{policy.name} returned {got}; accepted: agents.Turn(response) for every request, with a text")
