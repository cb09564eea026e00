"""A small game of hidden information as a user would write it; no player and no solver is registered for it."""

from collections.abc import Mapping
from typing import Any

import textgames


class Hiding(textgames.TSMG[str]):
    """``player_0`` hides and ``player_1`` looks in one place; on the left a find pays ``worth``, on the right 1.

    In equilibrium ``player_1`` gets ``worth / (1 + worth)``.
    """

    players = ("player_0", "player_1")
    actions = ("left", "right")
    hidden_information = True

    def __init__(self, *, worth: float = 1.0) -> None:
        self._worth = worth  # a setting that is no attribute of its name

    def initial_outcomes(self) -> list[tuple[float, str]]:
        return [(1.0, "")]

    def initial_state(self, rng: Any) -> str:
        return ""

    def to_move(self, state: str) -> tuple[str, ...]:
        return (self.players[bool(state)],)

    def outcomes(self, state: str, joint_action: Mapping[str, str]) -> list[Any]:
        (action,) = joint_action.values()
        found = {"left": self._worth, "right": 1.0}[action] if action == state else 0.0
        return [(1.0, action, {"player_0": -found, "player_1": found}, bool(state))]

    def transition(self, state: str, joint_action: Mapping[str, str], rng: Any) -> tuple[str, dict[str, float], bool]:
        ((_, after, rewards, over),) = self.outcomes(state, joint_action)
        return after, rewards, over

    def observe(self, state: str, player: str) -> str:
        return "Hide." if player == "player_0" else "Look."

    def instructions(self, player: str) -> str:
        return "One hides on the left or on the right, and the other looks in one of these places."


class Undealt(Hiding):
    """The same without the chances of its beginning, so that it can't be solved."""

    initial_outcomes = textgames.TSMG.initial_outcomes  # type: ignore[assignment]
