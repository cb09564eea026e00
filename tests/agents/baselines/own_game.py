"""A small game of hidden information as a user would write it; no player and no solver is registered for it."""

from collections.abc import Mapping
from typing import Any

from tests.textgames.own_game import OwnGame


class Hiding(OwnGame):
    """``player_0`` hides and ``player_1`` looks in one place; on the left a find pays ``worth``, on the right 1.

    In equilibrium ``player_1`` gets ``worth / (1 + worth)``.
    """

    players = ("player_0", "player_1")
    actions = ("left", "right")
    hidden_information = True

    def __init__(self, *, worth: float = 1.0) -> None:
        self._worth = worth  # a setting that is no attribute of its name

    def initial_outcomes(self) -> list[tuple[float, Any]]:
        return [(1.0, 0)]

    def to_move(self, state: Any) -> tuple[str, ...]:
        return (self.players[bool(state)],)

    def outcomes(self, state: Any, joint_action: Mapping[str, str]) -> list[Any]:
        (action,) = joint_action.values()
        found = {"left": self._worth, "right": 1.0}[action] if action == state else 0.0
        return [(1.0, action, {"player_0": -found, "player_1": found}, bool(state))]

    def observe(self, state: Any, player: str) -> str:
        return "Hide." if player == "player_0" else "Look."


class Undealt(Hiding):
    """The same without the chances of its beginning, so that it can't be solved."""

    initial_outcomes = OwnGame.initial_outcomes  # type: ignore[assignment]
