"""What players around another player have in common."""

from typing import Any

from agents.turn import Policy, TurnRequest, check_game, is_served
from textgames.texts.actions import ActionNames, Unreadable, action_content, parse_action
from textgames.tsmg import TSMG


class PlayerAround:
    """A player that asks another one, and is asked as that one is.

    Attributes:
        inner: the player inside.
    """

    def __init__(self, inner: Policy) -> None:
        self.inner = inner

    @property
    def served(self) -> bool:
        """As the player inside."""
        return is_served(self.inner)

    @property
    def history_turns(self) -> int | None:
        """As the player inside."""
        turns: int | None = getattr(self.inner, "history_turns", 0)
        return turns

    def check_game(self, game: TSMG[Any]) -> None:
        """Raise a ValueError for a game that the player inside can't play."""
        check_game(self.inner, game)

    async def aclose(self) -> None:
        """Release the connections of the player inside."""
        if (close := getattr(self.inner, "aclose", None)) is not None:
            await close()


def named_action(request: TurnRequest, response: str) -> str | None:
    """The action that a response names; where none are listed, whatever stands in its action tag."""
    if request.legal_actions:
        named = parse_action(response, ActionNames(request.legal_actions))
        return named if isinstance(named, str) else None
    found = action_content(response)
    return None if isinstance(found, Unreadable) else found[0].strip().casefold()
