"""Tic-tac-toe, nim and Connect Four: turns, wins and refusals, rules against plain searches, and exact values."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from textgames.scenarios import SCENARIOS
from textgames.solving.minimax import Minimax
from textgames.strategy.connect_four import ConnectFour, ConnectFourState, minimax
from textgames.strategy.nim import Nim, NimState
from textgames.strategy.tic_tac_toe import TicTacToe
from textgames.yardsticks import find_yardstick

PLAYERS = ("player_0", "player_1")
TOLD = {"tic-tac-toe": {"three in a row", "a draw"}, "nim": {""}, "connect-four-small": {"connected 4", "a draw"}}


@pytest.mark.parametrize("name", TOLD)
def test_games_are_played_in_turns_to_their_end_and_it_is_told_of_who_did_it(name):
    game, ends, told = SCENARIOS[name].game(), set(), set()
    for seed in range(60):
        rng = np.random.default_rng(seed)
        state, over, rounds = game.initial_state(rng), False, 0
        while not over:
            mover = PLAYERS[rounds % 2]
            assert game.to_move(state) == (mover,)
            before, action = state, game.sample_action(state, mover, rng)
            state, rewards, over = game.transition(state, {mover: action}, rng)
            assert over or not any(rewards.values())
            rounds += 1
        paid = rewards["player_0"]
        assert rewards == {"player_0": paid, "player_1": -paid}
        assert [game.succeeded(state, player) for player in PLAYERS] == [paid == 1.0, paid == -1.0]
        assert game.metrics(state, "player_0") == {"won": float(paid == 1.0), "drawn": float(paid == 0.0)}
        ends.add(paid)
        told.add(game.what_happened(before, {mover: action}, state, mover).partition("; ")[2])
        assert game.what_happened(before, {mover: action}, state, PLAYERS[rounds % 2]) == ""
    assert ends == ({1.0, -1.0} if name == "nim" else {1.0, -1.0, 0.0})
    assert told == TOLD[name]


# ---------------------------------------------------------------- tic-tac-toe


def test_values_of_tic_tac_toe_known_by_heart():
    yardstick, start = Minimax(TicTacToe()), "." * 9
    assert yardstick.value(start, None, "player_0") == 0.0
    assert len(yardstick._solved) == 4520  # boards on which somebody is to move
    assert set(yardstick.values(start, 9, "player_0").values()) == {0.0}
    # a side cell in reply to a corner loses, the centre draws
    replies = yardstick.values("X........", 8, "player_1")
    assert [cell for cell, value in replies.items() if value == 0.0] == ["b2"]
    values = yardstick.values("XX.OO....", 5, "player_0")  # X wins at once or never
    assert [cell for cell, value in values.items() if value == 1.0] == ["c3"]
    assert yardstick.values("XX.OO....", 1, "player_0") == {**dict.fromkeys(values, 0.0), "c3": 1.0}


# ---------------------------------------------------------------- nim


def mover_wins(heaps: Sequence[int], misere: bool) -> bool:
    """Whether the player who is to move wins with perfect play: Bouton's rule."""
    balance = 0
    for size in heaps:
        balance ^= size
    return (balance != 0) != (misere and all(size <= 1 for size in heaps))


@pytest.mark.parametrize("misere", [False, True])
def test_values_of_nim_follow_boutons_rule(misere):
    game = Nim(heaps=(4, 3, 5), misere=misere)
    yardstick = Minimax(game)
    for heaps in itertools.product(range(5), range(4), range(6)):
        if any(heaps):
            expected = 1.0 if mover_wins(heaps, misere) else -1.0
            for mover, player in enumerate(game.players):
                assert yardstick.value(NimState(heaps, mover), None, player) == expected


# ---------------------------------------------------------------- Connect Four


def plain_winner(rows: tuple[str, ...], connect: int) -> str | None:
    """The mark that has a row on a drawn board, looked for cell by cell."""
    height, width = len(rows), len(rows[0])
    for y, x in itertools.product(range(height), range(width)):
        for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
            ends = y + down * (connect - 1), x + right * (connect - 1)
            if 0 <= ends[0] < height and 0 <= ends[1] < width:
                marks = {rows[y + i * down][x + i * right] for i in range(connect)}
                if len(marks) == 1 and marks != {"."}:
                    return marks.pop()
    return None


@pytest.mark.parametrize(("rows", "columns", "connect"), [(6, 7, 4), (4, 4, 4), (1, 4, 2), (5, 2, 3)])
def test_random_games_end_as_a_plain_search_says(rows, columns, connect):
    game, wins = ConnectFour(rows=rows, columns=columns, connect=connect), 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        state, over = game.initial_state(rng), False
        while not over:
            (mover,) = game.to_move(state)
            expected = list(game.board(state))
            assert plain_winner(game.board(state), connect) is None
            action = game.sample_action(state, mover, rng)
            state, rewards, over = game.transition(state, {mover: action}, rng)
            column = int(action) - 1
            lowest = max(row for row in range(rows) if expected[row][column] == ".")
            mark = "XO"[game.players.index(mover)]
            expected[lowest] = expected[lowest][:column] + mark + expected[lowest][column + 1 :]
            assert game.board(state) == tuple(expected)
        won = plain_winner(game.board(state), connect)
        assert rewards["player_0"] == {"X": 1.0, "O": -1.0, None: 0.0}[won]
        wins += won is not None
        assert won or "." not in "".join(game.board(state))
    assert wins


def test_a_mirror_image_is_worth_the_same():
    """Solved with and without mirror images taken as one: every position of random games has the same values."""
    game, rng = ConnectFour(rows=3, columns=4, connect=3), np.random.default_rng(0)
    with_mirror, plain = minimax(game), Minimax(game)
    for _ in range(10):
        state, over = ConnectFourState(), False
        while not over:
            (mover,) = game.to_move(state)
            values = plain.values(state, None, mover)
            assert with_mirror.values(state, None, mover) == values
            mirrored = with_mirror.values(game.mirrored(state), None, mover)
            assert mirrored == {str(5 - int(column)): value for column, value in sorted(values.items(), reverse=True)}
            assert game.board(game.mirrored(state)) == tuple(row[::-1] for row in game.board(state))
            state, _, over = game.transition(state, {mover: game.sample_action(state, mover, rng)}, rng)
    assert len(with_mirror._solved) < 0.6 * len(plain._solved)


def test_columns_with_two_digits_stand_below_each_other():
    game, rng = ConnectFour(rows=2, columns=11), np.random.default_rng(0)
    state, _, _ = game.transition(ConnectFourState(), {"player_0": "10"}, rng)
    text = game.observe(state, "player_1")
    assert text.splitlines()[3:5] == [" .  .  .  .  .  .  .  .  .  X  .", " 1  2  3  4  5  6  7  8  9 10 11"]
    assert game.read_observation(text, "player_1") == state


@pytest.mark.slow
def test_four_by_four_is_a_draw_and_larger_boards_are_not_solved():
    yardstick = find_yardstick(ConnectFour(rows=4, columns=4))
    assert yardstick is not None
    assert yardstick.values(ConnectFourState(), 16, "player_0") == dict.fromkeys("1234", 0.0)
    assert find_yardstick(ConnectFour()) is None
    with pytest.raises(ValueError, match="at most 16 cells, this one has 42"):
        minimax(ConnectFour())
