"""Every game draws itself, without a drawing library, in frames of one size."""

from typing import Any

import numpy as np
import pytest

from textgames.environments.pictures import COLUMNS, LINES, board_picture, glyph, text_picture


def test_every_printable_ascii_character_has_a_glyph_of_its_own():
    shapes = {glyph(chr(code)).tobytes() for code in range(32, 127)}
    assert len(shapes) == 95
    assert glyph("☃").tobytes() not in shapes
    assert np.array_equal(glyph("é"), glyph("e"))
    assert glyph("┌")[5, 5]
    assert not glyph("┌")[5, 0]


def letters(picture: np.ndarray[Any, Any]) -> list[str]:
    """What is written on a page, read back by the font."""
    dots = picture[::2, ::2, 0] > 128
    known = {glyph(chr(code)).tobytes(): chr(code) for code in range(32, 127)}
    cells = dots.reshape(LINES, 10, COLUMNS, 6).swapaxes(1, 2)
    return ["".join(known[np.ascontiguousarray(cell).tobytes()] for cell in line).rstrip() for line in cells]


def test_a_text_reads_on_its_picture():
    text = "Round 1 of 10.\n\nHistory: A, B"
    assert letters(text_picture(text)) == text.split("\n") + [""] * 27
    assert text_picture(text).shape == text_picture("").shape == (600, 960, 3)


def test_long_lines_are_broken_and_the_last_of_many_lines_are_shown():
    assert [line.count("x") for line in letters(text_picture("x" * 200))[:4]] == [80, 80, 40, 0]
    shown = letters(text_picture("\n".join(map(str, range(100)))))
    assert shown == ["(71 lines above)", *map(str, range(71, 100))]


def test_a_mark_without_a_colour_is_written_on_its_tile():
    picture = board_picture(("ab", "  "), {"b": (1, 2, 3), " ": (0, 0, 0)}, {})
    assert picture.shape == (64, 64, 3)
    tile = picture[6:26, 10:22, 0] < 128
    assert np.array_equal(tile[::2, ::2], glyph("a"))
    assert tuple(picture[16, 48]) == (1, 2, 3)


def test_the_legend_stands_below_the_board_and_its_marks_on_the_tiles():
    picture = board_picture(("ab",), {"a": (1, 2, 3), "b": (240, 250, 255)}, {"a": "wall", "b": "ice"})
    assert picture.shape == (3 * 32, 7 * 12, 3)
    for row in (0, 1):
        mark = picture[row * 32 + 6 : row * 32 + 26 : 2, 10:22:2, 0] > 128
        assert np.array_equal(mark, glyph("a"))
    assert np.array_equal(picture[6:26:2, 42:54:2, 0] < 128, glyph("b"))
    told = picture[32 + 6 : 32 + 26 : 2, 36:84:2, 0] > 128
    assert np.array_equal(told, np.hstack([glyph(char) for char in "wall"]))


def test_a_ragged_board_is_refused():
    with pytest.raises(ValueError, match="rows of one length"):
        board_picture(("abc", "a"), {}, {})
