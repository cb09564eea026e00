"""Drawing a state: as text, as a live board in the terminal, or as a picture. One way for all games."""

import sys
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from textgames.environments.pictures import board_picture, text_picture
from textgames.tsmg import TSMG

_HOME_AND_CLEAR = "\x1b[H\x1b[2J"
_RESET = "\x1b[0m"

RENDER_MODES = ["ansi", "human", "rgb_array"]


def render_state(game: TSMG[Any], state: Any, mode: str | None, title: str) -> str | NDArray[np.uint8] | None:
    """Render one state in a render mode; ``title`` is a line above the board that ``"human"`` shows.

    Returns:
        Text for ``"ansi"``; for ``"rgb_array"`` an array of shape (height, width, 3), uint8; else ``None``.
    """
    if mode == "ansi":
        return game.describe(state)
    if mode == "rgb_array":
        return board_picture(game.board(state), game.palette) if game.has_board else text_picture(game.describe(state))
    if mode == "human":
        show(game, state, title, sys.stdout)
    return None


def show(game: TSMG[Any], state: Any, title: str, out: TextIO) -> None:
    """Draw the state on a terminal, over the one before it; elsewhere print it after the one before it."""
    text = game.describe(state)
    if out.isatty():
        colours = {mark: f"\x1b[48;2;{r};{g};{b}m\x1b[38;2;0;0;0m" for mark, (r, g, b) in game.palette.items()}
        lines = text.splitlines()
        if game.has_board:
            lines = ["".join(f"{colours.get(mark, '')}{mark} {_RESET}" for mark in row) for row in game.board(state)]
        text = "\n".join(lines)
        out.write(_HOME_AND_CLEAR)
    out.write(f"{title}\n{text}\n\n")
    out.flush()
