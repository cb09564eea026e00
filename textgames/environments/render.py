"""Drawing a state: as text, as a live board in the terminal, or as a picture. One way for all games.

A view is ``"player"`` (what the player of the environment may see, or the first of several), another player's name, or
``"spectator"`` (everything, what is hidden included).
"""

import sys
from typing import Any, TextIO

from textgames.environments.pictures import Picture, board_picture, png, text_picture
from textgames.settings import check_one_of
from textgames.tsmg import TSMG, Player, SeenBoard

_HOME_AND_CLEAR = "\x1b[H\x1b[2J"
_RESET = "\x1b[0m"

RENDER_MODES = ["ansi", "human", "rgb_array"]


def checked_view(game: TSMG[Any], mode: str | None, view: str | None) -> tuple[str | None, str | None]:
    """Return a render mode and a view, or raise a ValueError for one that isn't known."""
    if mode is not None:
        check_one_of("render_mode", mode, tuple(RENDER_MODES))
    if view is not None:
        check_one_of("render_view", view, ("player", "spectator", *game.players))
    return mode, view


def render_state(
    game: TSMG[Any], state: Any, mode: str | None, title: str, view: str | None, player: Player
) -> str | Picture | None:
    """Render one state in a render mode, as ``player`` sees it in the view ``"player"``.

    Without a view it is that one in a game that hides something, else the spectator's. ``title`` is a line above the
    board that ``"human"`` shows.

    Returns:
        Text for ``"ansi"``; for ``"rgb_array"`` an array of shape (height, width, 3), uint8; else ``None``.
    """
    if mode is None:
        return None
    view = checked_view(game, mode, view)[1] or ("player" if game.hidden_information else "spectator")
    viewer = player if view == "player" else view
    if mode == "rgb_array":
        return _picture(game, state, viewer)
    text = _text(game, state, viewer)
    if mode == "ansi":
        return text
    seen = _board(game, state, viewer)
    _show(game, seen[0] if seen else None, text, title, sys.stdout)
    return None


def observed_picture(game: TSMG[Any], state: Any, player: Player) -> bytes:
    """Return what a player sees as a PNG file: its board, or else all of its text."""
    return png(_picture(game, state, player, whole=True))


def _picture(game: TSMG[Any], state: Any, viewer: str, *, whole: bool = False) -> Picture:
    seen = _board(game, state, viewer)
    if seen is None:
        return text_picture(_text(game, state, viewer), whole=whole)
    return board_picture(seen[0], game.palette, seen[1])


def _board(game: TSMG[Any], state: Any, viewer: str) -> SeenBoard | None:
    """Return the board with its legend as a player or the spectator sees it, if there is one."""
    if viewer == "spectator":
        return (game.board(state), game.legend) if game.has_board else None
    return game.seen_by(state, viewer)


def _text(game: TSMG[Any], state: Any, viewer: str) -> str:
    return game.describe(state) if viewer == "spectator" else game.observe(state, viewer)


def _show(game: TSMG[Any], rows: tuple[str, ...] | None, text: str, title: str, out: TextIO) -> None:
    """Draw a state on a terminal, over the one before it; elsewhere print its text after the one before it."""
    if out.isatty():
        colours = {mark: f"\x1b[48;2;{r};{g};{b}m\x1b[38;2;0;0;0m" for mark, (r, g, b) in game.palette.items()}
        if rows is not None:
            text = "\n".join("".join(f"{colours.get(mark, '')}{mark} {_RESET}" for mark in row) for row in rows)
        out.write(_HOME_AND_CLEAR)
    out.write(f"{title}\n{text}\n\n")
    out.flush()
