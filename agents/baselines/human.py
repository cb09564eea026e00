"""A person at the terminal: reads the observation on standard error, answers with keys or on standard input."""

import sys
from collections.abc import Sequence
from typing import IO, Any

from rich.cells import cell_len
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from agents.common.console import PlainConsole
from agents.common.keys import END_OF_INPUT, Keyboard
from agents.policy import as_requests
from agents.turn import Turn, TurnRequest

QUIT, HELP = ("q", "quit", "exit"), ("?", "help")
ARROWS = ("left", "right", "up", "down")


class PersonLeft(KeyboardInterrupt):
    """The person wishes to stop, or there is no more input; the loop and the commands take it for Ctrl-C."""


class HumanPlayer:
    """A :class:`~agents.turn.Policy` that asks the person at the terminal.

    An action may be shortened as long as it stays clear (``r`` for right). At a terminal, arrow keys, ``q`` (leave) and
    ``?`` (the rules) act at once. ``stdin`` is read line by line; without it, standard input, key by key at a terminal.
    """

    name = "human"
    sequential = True
    """The loop plays one episode after the other."""

    def __init__(self, stdin: IO[str] | None = None, console: Console | None = None) -> None:
        if stdin is None and sys.stdin is None:
            raise ValueError("a person answers at standard input, and that is closed: start it at a terminal")
        self._stdin = stdin or sys.stdin
        self._keyboard = Keyboard() if stdin is None and sys.stdin.isatty() else None
        self._console = console or PlainConsole(stderr=True)
        self._shown_instructions: dict[str, str] = {}

    @property
    def settings(self) -> dict[str, Any]:
        return {"kind": "human"}

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        """Ask for one action after the other; :class:`PersonLeft` is raised after ``q``, Ctrl-D or a file's end."""
        turns = []
        for request in as_requests(requests):
            typed = self._ask(request)
            open_action = bool(request.action_help) and not request.legal_actions
            needs_tag = open_action or (request.game is not None and not request.game.bare_responses)
            turns.append(Turn(f"<action>{typed}</action>" if needs_tag else typed))
        return turns

    def _ask(self, request: TurnRequest) -> str:
        legal = request.legal_actions
        if request.instructions and self._shown_instructions.get(request.player) != request.instructions:
            self._shown_instructions[request.player] = request.instructions
            self._show_rules(request)
        steps = request.steps_left
        left = "" if steps is None else f", {steps} step{'s'[: steps != 1]} left"
        self._console.print(Panel(Text(request.observation), title=Text(f"{request.player}{left}")))
        arrows = self._keyboard is not None and not {*ARROWS}.isdisjoint(legal)
        known = ", ".join(legal) or request.action_help or "any text"
        hint = f"{known}{' (or the arrow keys)' if arrows else ''}; ? for the rules, q to quit"
        while True:
            self._console.print(Text(hint, style="bold"))
            if self._keyboard is not None:
                typed = self._typed(self._keyboard, legal)
            elif line := self._stdin.readline():
                typed = line.strip()
            else:
                raise PersonLeft("no more input")
            action = complete(typed, legal)
            word = typed.casefold() if action is None or not legal else ""  # an action may have the same letter
            if word in QUIT:
                raise PersonLeft("the player left")
            if word in HELP:
                self._show_rules(request)
            elif action is not None:
                return action
            else:
                self._console.print(Text(f"{typed!r} isn't one of these actions"))

    def _show_rules(self, request: TurnRequest) -> None:
        self._console.print(Panel(Text(request.instructions or "this game has no rules to read"), title="rules"))

    def _typed(self, keyboard: Keyboard, legal: Sequence[str]) -> str:
        """Return the text that is typed up to Enter, echoed; or a key that acts at once."""
        at_once = [name for name in ARROWS if name in legal]
        at_once += [key for key in ("q", "?") if legal and not any(action.startswith(key) for action in legal)]
        typed = ""
        try:
            with keyboard:
                self._echo("> ")
                while (key := keyboard.read()) != "enter":
                    if key == END_OF_INPUT:
                        raise PersonLeft("the player left")
                    if key in at_once and not typed:
                        self._echo(key)
                        return key
                    if key == "backspace":
                        self._echo("\b \b" * cell_len(typed[-1:]))
                        typed = typed[:-1]
                    elif key is not None and len(key) == 1 and key.isprintable():
                        self._echo(key)
                        typed += key
            return typed.strip()
        finally:
            self._echo("\n")  # after Ctrl-C too, so that what is said next has a line of its own

    def _echo(self, text: str) -> None:
        self._console.file.write(text)
        self._console.file.flush()


def complete(typed: str, actions: Sequence[str]) -> str | None:
    """Complete a typed action from a beginning that only it has; any text if no actions are known."""
    if not actions:
        return typed or None
    names = {action.casefold(): action for action in actions}
    typed = typed.casefold()
    matches = [typed] if typed in names else [name for name in names if typed and name.startswith(typed)]
    return names[matches[0]] if len(matches) == 1 else None
