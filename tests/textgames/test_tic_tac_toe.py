"""Tic-tac-toe: its rules and its exact values, against OpenSpiel's where that is installed."""

from textgames.solving.minimax import Minimax
from textgames.strategy.tic_tac_toe import TicTacToe, result

START = "." * 9


def test_every_line_wins_and_nothing_else():
    for line in [
        "XXX......",
        "...XXX...",
        "......XXX",
        "X..X..X..",
        ".X..X..X.",
        "..X..X..X",
        "X...X...X",
        "..X.X.X..",
    ]:
        assert result(line) == 1.0
        assert result(line.replace("X", "O")) == -1.0
    assert result("XX.OO....") is None
    assert result("XOXXOOOXX") == 0.0


def test_values_known_by_heart():
    yardstick = Minimax(TicTacToe())
    assert yardstick.value(START, None, "player_0") == 0.0
    assert len(yardstick._solved) == 4520  # boards on which somebody is to move
    assert set(yardstick.values(START, 9, "player_0").values()) == {0.0}
    # a side cell in reply to a corner loses, the centre draws
    replies = yardstick.values("X........", 8, "player_1")
    assert [cell for cell, value in replies.items() if value == 0.0] == ["b2"]
    values = yardstick.values("XX.OO....", 5, "player_0")  # X wins at once or never
    assert [cell for cell, value in values.items() if value == 1.0] == ["c3"]
    assert yardstick.values("XX.OO....", 1, "player_0") == {**dict.fromkeys(values, 0.0), "c3": 1.0}
