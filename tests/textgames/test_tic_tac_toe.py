"""Tic-tac-toe: its rules and its exact values, against OpenSpiel's where that is installed."""

import time

import numpy as np
import pytest

from textgames.solving.minimax import Minimax
from textgames.strategy.tic_tac_toe import CELLS, TicTacToe, result, winner

START = "." * 9


def test_every_line_wins_and_nothing_else() -> None:
    for line in (
        "XXX......",
        "...XXX...",
        "......XXX",
        "X..X..X..",
        ".X..X..X.",
        "..X..X..X",
        "X...X...X",
        "..X.X.X..",
    ):
        assert winner(line) == "X"
        assert result(line.replace("X", "O")) == -1.0
    assert result("XX.OO....") is None
    assert result("XOXXOOOXX") == 0.0


def test_values_known_by_heart() -> None:
    started = time.process_time()
    yardstick = Minimax(TicTacToe())
    assert yardstick.value(START, None, "player_0") == 0.0
    assert time.process_time() - started < 1  # 0.1 s
    assert len(yardstick._solved[0].space.numbers) == 4520  # boards on which somebody is to move
    assert set(yardstick.values(START, 9, "player_0").values()) == {0.0}
    # a side cell in reply to a corner loses, the centre draws
    replies = yardstick.values("X........", 8, "player_1")
    assert [cell for cell, value in replies.items() if value == 0.0] == ["b2"]
    values = yardstick.values("XX.OO....", 5, "player_0")  # X wins at once or never
    assert [cell for cell, value in values.items() if value == 1.0] == ["c3"]
    assert yardstick.values("XX.OO....", 1, "player_0") == {**dict.fromkeys(values, 0.0), "c3": 1.0}


def test_values_are_openspiels() -> None:
    """Rules and values, position by position of random games, beside OpenSpiel's own board and alpha-beta search."""
    pyspiel = pytest.importorskip("pyspiel")
    from open_spiel.python.algorithms import minimax as openspiel_minimax

    game, theirs = TicTacToe(), pyspiel.load_game("tic_tac_toe")
    yardstick, rng, compared = Minimax(game), np.random.default_rng(0), 0
    for _ in range(12):
        state, other = START, theirs.new_initial_state()
        while not other.is_terminal():
            (mover,) = game.to_move(state)
            number = game.players.index(mover)
            assert other.current_player() == number
            assert [CELLS[cell] for cell in other.legal_actions()] == list(game.legal_actions(state, mover))
            if state != START:
                value, _ = openspiel_minimax.alpha_beta_search(theirs, state=other, maximizing_player_id=number)
                assert yardstick.value(state, None, mover) == value
                compared += 1
            action = game.sample_action(state, mover, rng)
            state, rewards, over = game.transition(state, {mover: action}, rng)
            other.apply_action(CELLS.index(action))
        assert over
        assert [rewards[player] for player in game.players] == other.returns()
    assert compared > 50
