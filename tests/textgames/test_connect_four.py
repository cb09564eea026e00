"""Connect Four: its rules against a plain search for rows, and its exact values on small boards."""

import numpy as np
import pytest

from textgames.solving.minimax import Minimax
from textgames.strategy.connect_four import ConnectFour, ConnectFourState, minimax
from textgames.yardsticks import find_yardstick


def plain_winner(rows: tuple[str, ...], connect: int) -> str | None:
    """The mark that has a row on a drawn board, looked for cell by cell."""
    height, width = len(rows), len(rows[0])
    for y in range(height):
        for x in range(width):
            for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                ends = y + down * (connect - 1), x + right * (connect - 1)
                if 0 <= ends[0] < height and 0 <= ends[1] < width:
                    marks = {rows[y + i * down][x + i * right] for i in range(connect)}
                    if len(marks) == 1 and marks != {"."}:
                        return marks.pop()
    return None


@pytest.mark.parametrize(("rows", "columns", "connect"), [(6, 7, 4), (4, 4, 4), (3, 5, 3), (1, 4, 2), (5, 2, 3)])
def test_random_games_end_as_a_plain_search_says(rows, columns, connect):
    game, wins = ConnectFour(rows=rows, columns=columns, connect=connect), 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        state, over = game.initial_state(rng), False
        while not over:
            (mover,) = game.to_move(state)
            before = game.board(state)
            assert plain_winner(before, connect) is None
            action = game.sample_action(state, mover, rng)
            state, rewards, over = game.transition(state, {mover: action}, rng)
            column = int(action) - 1
            lowest = max(row for row in range(rows) if before[row][column] == ".")
            mark = "XO"[game.players.index(mover)]
            expected = list(before)
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
            assert game.mirrored(game.mirrored(state)) == state
            assert game.board(game.mirrored(state)) == tuple(row[::-1] for row in game.board(state))
            state, _, over = game.transition(state, {mover: game.sample_action(state, mover, rng)}, rng)
    assert len(with_mirror._solved) < 0.6 * len(plain._solved)


@pytest.mark.slow
def test_four_by_four_is_a_draw():
    game = ConnectFour(rows=4, columns=4)
    yardstick = find_yardstick(game)
    assert yardstick is not None
    assert yardstick.values(ConnectFourState(), 16, "player_0") == dict.fromkeys("1234", 0.0)
    assert sum(positions_by_discs(game, 16)) == 161_029


def positions_by_discs(game: ConnectFour, discs: int) -> list[int]:
    """How many boards with 0, 1, 2, ... discs can come up."""
    counts, reached = [], {ConnectFourState()}
    for _ in range(discs + 1):
        counts.append(len(reached))
        reached = {
            after
            for state in reached
            for mover in game.to_move(state)  # none when the game is over
            for action in game.legal_actions(state, mover)
            for after in game.play(state, action)
        }
    return counts


@pytest.mark.slow
def test_the_usual_board_has_as_many_positions_as_others_counted():
    """OEIS A212693: positions of the board of 7 by 6 after n discs."""
    assert positions_by_discs(ConnectFour(), 6) == [1, 7, 49, 238, 1120, 4263, 16422]


def test_columns_with_two_digits_stand_below_each_other():
    game, rng = ConnectFour(rows=2, columns=11), np.random.default_rng(0)
    state, _, _ = game.transition(ConnectFourState(), {"player_0": "10"}, rng)
    text = game.observe(state, "player_1")
    assert text.splitlines()[3:5] == [" .  .  .  .  .  .  .  .  .  X  .", " 1  2  3  4  5  6  7  8  9 10 11"]
    assert game.read_observation(text, "player_1") == state


def test_boards_too_large_to_solve_have_no_yardstick():
    assert find_yardstick(ConnectFour()) is None
    with pytest.raises(ValueError, match="at most 16 cells, this one has 42"):
        minimax(ConnectFour())
