"""A person at the terminal: reads the observation on standard error, types the action on standard input."""

import sys
from collections.abc import Sequence
from typing import IO, Any

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from agents.policy import as_requests
from agents.turn import Turn, TurnRequest

QUIT = ("quit", "exit")


class HumanPlayer:
    """A :class:`~agents.turn.Policy` that asks the person at the terminal.

    An action may be shortened as long as it stays clear (``r`` for right). Ctrl-D, Ctrl-C and ``quit`` leave: they
    raise ``KeyboardInterrupt``, which the loop and the commands take for the wish to stop.

    Args:
        stdin: where answers are read from; standard input when not given.
        console: where everything is shown; standard error when not given.
    """

    name = "human"
    sequential = True
    """The loop plays one episode after the other: nobody wants 64 boards in turn."""

    def __init__(self, stdin: IO[str] | None = None, console: Console | None = None) -> None:
        self._stdin = stdin
        self._console = Console(stderr=True) if console is None else console
        self._shown_instructions: dict[str, str] = {}

    @property
    def settings(self) -> dict[str, Any]:
        """What describes this player, for manifests."""
        return {"kind": "human"}

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        """Ask for one action after the other.

        Raises:
            KeyboardInterrupt: the person leaves.
        """
        return [Turn(self._ask(request)) for request in as_requests(requests)]

    def _ask(self, request: TurnRequest) -> str:
        show = self._console.print
        if request.instructions and self._shown_instructions.get(request.player) != request.instructions:
            self._shown_instructions[request.player] = request.instructions
            show(Panel(Text(request.instructions), title="rules"))
        left = "" if request.steps_left is None else f", {request.steps_left} steps left"
        show(Panel(Text(request.observation), title=f"{request.player}{left}"))
        while True:
            self._console.print(f"[bold]{', '.join(request.legal_actions) or 'action'}[/] or quit > ", end="")
            typed = self._read()
            if typed in QUIT and typed not in request.legal_actions:
                raise KeyboardInterrupt("the player left")
            action = complete(typed, request.legal_actions)
            if action is not None:
                return action
            show(Text(f"{typed!r} isn't one of these actions"))

    def _read(self) -> str:
        line = (sys.stdin if self._stdin is None else self._stdin).readline()
        if not line:  # Ctrl-D, or the end of a piped file
            self._console.print()
            raise KeyboardInterrupt("the player left")
        return line.strip().casefold()


def complete(typed: str, actions: tuple[str, ...]) -> str | None:
    """The action that was typed, in full or by a beginning that only it has; any text where no actions are known."""
    if not actions:
        return typed or None
    if typed in actions:
        return typed
    matches = [action for action in actions if typed and action.startswith(typed)]
    return matches[0] if len(matches) == 1 else None
