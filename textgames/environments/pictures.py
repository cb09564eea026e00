"""Pictures of a state without a drawing library: a board as coloured tiles, any other text as it reads.

All frames of an episode have one size, as writers of videos need it. The font, ``font.txt``, is a character a line:
eight rows of five dots, the last one below the line.
"""

import textwrap
import unicodedata
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

Colour = tuple[int, int, int]

TILE = 32  # pixels of a board's cell, across and down

COLUMNS, LINES = 80, 30
"""Characters of the page that texts stand on."""

_WIDTH, _HEIGHT = 6, 10  # dots of a character with the space around it
_DOT = 2  # pixels
_INK, _PAPER, _GRID, _BLANK = 235, 24, 90, 128


def board_picture(rows: tuple[str, ...], palette: Mapping[str, Colour]) -> NDArray[np.uint8]:
    """Return one square tile for each cell, with thin lines between them; shape (rows * 32, columns * 32, 3).

    A character without a colour is written on its tile. Rows of different lengths raise ValueError.
    """
    if not isinstance(rows, tuple) or len(set(map(len, rows))) != 1:
        raise ValueError(f"board() must return a tuple of rows of one length, got {rows!r}")
    cells = np.array([[palette.get(mark, (_BLANK,) * 3) for mark in row] for row in rows], dtype=np.uint8)
    image = cells.repeat(TILE, axis=1).repeat(TILE, axis=0)
    image[TILE - 1 :: TILE] = image[:, TILE - 1 :: TILE] = _GRID
    top, left = (TILE - _HEIGHT * _DOT) // 2, (TILE - _WIDTH * _DOT) // 2
    for y, row in enumerate(rows):
        for x, mark in enumerate(row):
            if mark not in palette:
                dots = glyph(mark).repeat(_DOT, axis=0).repeat(_DOT, axis=1)
                above, before = y * TILE + top, x * TILE + left
                image[above : above + dots.shape[0], before : before + dots.shape[1]][dots] = _PAPER
    return image


def text_picture(text: str) -> NDArray[np.uint8]:
    """Return a text in light letters on a dark page; shape (600, 960, 3), whatever the text.

    Long lines are broken. If there are too many lines the last ones are shown, as games write what is new there.
    """
    wrapper = textwrap.TextWrapper(COLUMNS, replace_whitespace=False, drop_whitespace=False)
    lines = [part for line in text.split("\n") for part in wrapper.wrap(line) or [""]]
    if len(lines) > LINES:
        above = len(lines) - LINES + 1
        lines = [f"({above} lines above)", *lines[above:]]
    page = np.zeros((LINES * _HEIGHT, COLUMNS * _WIDTH), dtype=np.bool_)
    for y, line in enumerate(lines):
        for x, char in enumerate(line):
            page[y * _HEIGHT : (y + 1) * _HEIGHT, x * _WIDTH : (x + 1) * _WIDTH] = glyph(char)
    grey = np.where(page, np.uint8(_INK), np.uint8(_PAPER)).repeat(_DOT, axis=0).repeat(_DOT, axis=1)
    return grey[:, :, np.newaxis].repeat(3, axis=2)


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
