"""Drawing a state: as text, as a live board in the terminal, or as a picture, without a drawing library.

A view is ``"player"`` (what the player of the environment may see, or the first of several), another player's name, or
``"spectator"`` (everything, what is hidden included). All frames of an episode have one size, as writers of videos
need it. The font, ``font.txt``, is a character a line: eight rows of five dots, the last one below the line.
"""

import struct
import sys
import textwrap
import unicodedata
import zlib
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from textgames.settings import check_one_of
from textgames.tsmg import TSMG, Player, SeenBoard

Colour = tuple[int, int, int]
Picture = NDArray[np.uint8]

TILE = 32  # pixels of a board's cell, across and down

COLUMNS, LINES = 80, 30
"""Characters of the page that texts stand on."""

_WIDTH, _HEIGHT = 6, 10  # dots of a character with the space around it
_DOT = 2  # pixels
_INK, _PAPER, _GRID, _BLANK = 235, 24, 90, (128, 128, 128)


def board_picture(rows: tuple[str, ...], palette: Mapping[str, Colour], legend: Mapping[str, str]) -> Picture:
    """Return one square tile for each cell, and the legend below; shape (height, width, 3).

    A character stands on its tile if the legend has it, or the palette lacks it. Rows of different lengths raise
    ValueError.
    """
    if not isinstance(rows, tuple) or len(set(map(len, rows))) != 1:
        raise ValueError(f"board() must return a tuple of rows of one length, got {rows!r}")
    tiles = {
        mark: _tile(palette.get(mark, _BLANK), mark if mark in legend or mark not in palette else " ")
        for mark in {*"".join(rows), *legend}
    }
    board = np.vstack([np.hstack([tiles[mark] for mark in row]) for row in rows])
    if not legend:
        return board
    page = _page([f"   {meaning}" for meaning in legend.values()], TILE // _DOT)
    page[:, :TILE] = np.vstack([tiles[mark] for mark in legend])
    width = max(board.shape[1], page.shape[1])
    beside = [((0, 0), (0, width - part.shape[1]), (0, 0)) for part in (board, page)]
    return np.vstack(
        [np.pad(board, beside[0], constant_values=_PAPER), np.pad(page, beside[1], constant_values=_PAPER)]
    )


@lru_cache(maxsize=1024)
def _tile(colour: Colour, mark: str) -> Picture:
    tile = np.full((TILE, TILE, 3), colour, dtype=np.uint8)
    top, left = (TILE - _HEIGHT * _DOT) // 2, (TILE - _WIDTH * _DOT) // 2
    dots = glyph(mark).repeat(_DOT, axis=0).repeat(_DOT, axis=1)
    dark = sum(part * weight for part, weight in zip(colour, (0.3, 0.6, 0.1), strict=True)) < 110
    tile[top : top + dots.shape[0], left : left + dots.shape[1]][dots] = _INK if dark else _PAPER
    tile[TILE - 1] = tile[:, TILE - 1] = _GRID
    return tile


def text_picture(text: str, *, whole: bool = False) -> Picture:
    """Return a text in light letters on a dark page; shape (600, 960, 3), whatever the text.

    Long lines are broken. If there are too many lines the last ones are shown, as games write what is new there; for a
    ``whole`` text the page grows.
    """
    wrapper = textwrap.TextWrapper(COLUMNS, replace_whitespace=False, drop_whitespace=False)
    lines = [part for line in text.split("\n") for part in wrapper.wrap(line) or [""]]
    if len(lines) > LINES and not whole:
        above = len(lines) - LINES + 1
        lines = [f"({above} lines above)", *lines[above:]]
    return _page([*lines, *[""] * (LINES - len(lines))], _HEIGHT, COLUMNS)


def _page(lines: Sequence[str], height: int, columns: int = 0) -> Picture:
    """Return lines of so many dots on a page as wide as the longest, or as ``columns``."""
    columns = max(columns, *map(len, lines))
    page = np.zeros((len(lines) * height, columns * _WIDTH), dtype=np.bool_)
    for y, line in enumerate(lines):
        top = y * height + (height - _HEIGHT) // 2
        for x, char in enumerate(line):
            page[top : top + _HEIGHT, x * _WIDTH : (x + 1) * _WIDTH] = glyph(char)
    grey = np.where(page, np.uint8(_INK), np.uint8(_PAPER)).repeat(_DOT, axis=0).repeat(_DOT, axis=1)
    return grey[:, :, np.newaxis].repeat(3, axis=2)


def png(picture: Picture) -> bytes:
    """Return a picture as a PNG file (RFC 2083): true colour, rows without a filter."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    height, width, _ = picture.shape
    rows = np.pad(picture.reshape(height, width * 3), ((0, 0), (1, 0)))  # every row begins with its filter: 0, none
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


@cache
def glyph(char: str) -> NDArray[np.bool_]:
    """Return the dots of a character; shape (10, 6). Accents are left out, what isn't in the font is an empty box."""
    dots = np.zeros((_HEIGHT, _WIDTH), dtype=np.bool_)
    name = unicodedata.name(char, "")
    if name.startswith("BOX DRAWINGS"):
        # the lines of a table, which meet those of the characters beside it, above and below
        middle, centre, words = _HEIGHT // 2, _WIDTH // 2, name.split()
        if "LEFT" in words or "HORIZONTAL" in words:
            dots[middle, : centre + 1] = True
        if "RIGHT" in words or "HORIZONTAL" in words:
            dots[middle, centre:] = True
        if "UP" in words or "VERTICAL" in words:
            dots[: middle + 1, centre] = True
        if "DOWN" in words or "VERTICAL" in words:
            dots[middle:, centre] = True
        return dots
    known = _font().get(char) or _font().get(unicodedata.normalize("NFKD", char)[:1])
    if known is None:
        dots[1:8, 0:5] = True
        dots[2:7, 1:4] = False
        return dots
    for y, row in enumerate(known, 1):
        dots[y, :5] = [dot == "#" for dot in row]
    return dots


@cache
def _font() -> Mapping[str, tuple[str, ...]]:
    lines = files("textgames").joinpath("environments/font.txt").read_text(encoding="utf-8").splitlines()
    return {line[0]: tuple(line[2:].split(" ")) for line in lines}


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
