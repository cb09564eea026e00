"""Asking a player, who may be anybody's own class, for its turns."""

from collections.abc import Sequence
from inspect import iscoroutine
from typing import Any

from agents.turn import Policy, Turn, TurnRequest


def ask(policy: Policy, requests: Sequence[TurnRequest]) -> Sequence[Turn]:
    """What a policy answers, one turn a request.

    Raises:
        TypeError: it answered in another form; the message says which is accepted.
        RuntimeError: it answered another number of requests.
    """
    turns: Any = policy.act(requests)
    if iscoroutine(turns):
        turns.close()
    if isinstance(turns, str) or not isinstance(turns, Sequence):
        raise TypeError(
            f"{policy.name}.act returned a {type(turns).__name__}; accepted: a list, an agents.Turn(response) for each "
            "request; who answers asynchronously has async def act_async(request), which returns one"
        )
    if len(turns) != len(requests):
        raise RuntimeError(f"{policy.name} returned {len(turns)} turns for {len(requests)} requests")
    if strange := [turn for turn in turns if not isinstance(turn, Turn)]:
        name = type(strange[0]).__name__
        raise TypeError(f"{policy.name} returned a {name}; accepted: agents.Turn(response) for every request")
    return turns
