"""What a player of Snake reads, and the way back from it to the state."""

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textgames.snake import Snake, SnakeState, read_observation
from textgames.snake.reading import SEARCH_LIMIT, share_bodies


def cells(width: int, *items: tuple[int, int]) -> tuple[int, ...]:
    return tuple(y * width + x for x, y in items)


def example() -> tuple[Snake, SnakeState]:
    game = Snake(width=5, height=4, num_players=2, num_opponents=1, num_apples=2, num_bananas=1, num_fires=1)
    snakes = (cells(5, (2, 1), (1, 1), (1, 0)), cells(5, (4, 3)), cells(5, (0, 3), (0, 2)))
    return game, SnakeState(snakes, cells(5, (3, 0), (2, 3)), cells(5, (4, 0)), cells(5, (3, 2)))


# ---------------------------------------------------------------- golden texts


@pytest.mark.parametrize("options", [{}, {"grid": False}, {"coordinates": False}])
def test_dead_player_reads_the_board_and_that_it_is_dead(options):
    game = Snake(num_players=2, num_apples=1, **options)
    state = SnakeState(((), (5,), (8, 18)), (77,), (), ())
    text = game.observe(state, "player_0")
    assert "\nYou: dead" in text
    assert text != game.observe(state, "player_1")
    if game.text.grid:
        assert not re.search(r"\b1\b", text.rpartition(":\n")[2])


def test_kinds_that_are_not_in_the_game_are_not_mentioned_but_missing_food_is():
    game = Snake(num_apples=2)
    text = game.observe(SnakeState(((3,), (9,)), (), (), ()), "player_0")
    assert "Apples (+1 each): none\n" in text
    for word in ("anana", " fire", " B ", " F"):
        assert word not in text
        assert word not in game.instructions("player_0")


def test_worth_is_told_with_its_sign_in_either_half():
    state = SnakeState(((3,), (9,)), (20,), (30,), (40,))
    options: dict[str, Any] = {"apple_reward": -1, "banana_reward": 0.25, "fire_reward": 0}
    game = Snake(num_apples=1, num_bananas=1, num_fires=1, **options)
    text = game.observe(state, "player_0")
    assert "Apples (-1 each): (0, 2)\nBananas (+0.25 each): (0, 3)\nFires (+0 each): (0, 4)\n" in text
    game = Snake(num_apples=1, num_bananas=1, num_fires=1, coordinates=False, **options)
    assert "A apple (-1), B banana (+0.25), F fire (+0)" in game.observe(state, "player_0")


def test_each_half_alone():
    _, state = example()
    both = Snake(width=5, height=4, num_players=2, num_apples=2, num_bananas=1, num_fires=1)
    only = {"width": 5, "height": 4, "num_players": 2, "num_apples": 2, "num_bananas": 1, "num_fires": 1}
    coordinates = Snake(**only, grid=False).observe(state, "player_0")  # type: ignore[arg-type]
    grid = Snake(**only, coordinates=False).observe(state, "player_0")  # type: ignore[arg-type]
    assert both.observe(state, "player_0").startswith(coordinates + "\nGrid (")
    assert "(2, 1)" not in grid
    # the instructions say that up increases Y: the grid alone must say where that is
    assert grid.startswith("Board: 5 wide, 4 high. (0, 0) is the bottom left corner, X grows right, Y grows up.\n")
    assert "_ empty; the top row has the largest Y):\n" in grid
    assert "top row" not in both.observe(state, "player_0")
    assert grid.rpartition(":\n")[2] == both.observe(state, "player_0").rpartition(":\n")[2]


# ---------------------------------------------------------------- the way back


@st.composite
def positions(draw: st.DrawFn, /, **fixed: Any) -> tuple[Snake, SnakeState, int]:
    """A game, a state that is reached by playing it, and a reader."""
    players, opponents = draw(st.integers(1, 3)), draw(st.integers(0, 2))
    options = {
        "width": draw(st.integers(4, 12)),
        "height": draw(st.integers(4, 12)),
        "num_apples": draw(st.integers(0, 2)),
        "num_bananas": draw(st.integers(0, 1)),
        "num_fires": draw(st.integers(0, 1)),
        "axes": draw(st.booleans()),
    }
    game = Snake(num_players=players, num_opponents=opponents, **(options | fixed))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    state = game.initial_state(rng)
    for _ in range(draw(st.integers(0, 25))):
        moves = {
            player: str(rng.choice(game.actions)) if rng.random() < 0.2 else polite(game, state, i, rng)
            for i, player in enumerate(game.players)
        }
        state, _, _ = game.transition(state, moves, rng)
    return game, state, draw(st.integers(0, players - 1))


def polite(game: Snake, state: SnakeState, i: int, rng: np.random.Generator) -> str:
    """A move that a built-in opponent might make in place of player ``i``."""
    if not state.snakes[i]:
        return "up"
    cell = int(rng.choice(game.opponent_targets(state.snakes[i])))
    step = {game.width: "up", -game.width: "down", -1: "left", 1: "right"}
    return step.get(cell - state.snakes[i][0], "up")


def seen_by(state: SnakeState, reader: int) -> SnakeState:
    snakes = state.snakes
    return state._replace(snakes=(snakes[reader], *snakes[:reader], *snakes[reader + 1 :]))


@settings(max_examples=120, deadline=None)
@given(positions(num_apples=4))
def test_coordinates_are_read_back_exactly(position):
    game, state, reader = position
    assert read_observation(game.observe(state, game.players[reader]), game) == seen_by(state, reader)


@settings(max_examples=120, deadline=None)
@given(positions(coordinates=False))
def test_grid_is_read_back_but_for_the_order_of_bodies(position):
    game, state, reader = position
    read, true = read_observation(game.observe(state, game.players[reader]), game), seen_by(state, reader)
    assert read[1:] == true[1:]
    assert [snake[:1] for snake in read.snakes] == [snake[:1] for snake in true.snakes]
    assert sorted(sum(read.snakes, ())) == sorted(sum(true.snakes, ()))
    width = game.width
    for snake in read.snakes:
        for cell, following in pairwise(snake):
            assert abs(cell % width - following % width) + abs(cell // width - following // width) == 1


def test_grid_alone_gives_bodies_exactly_where_there_is_one_way_to_share_them():
    game = Snake(coordinates=False, num_apples=0)
    state = SnakeState((cells(10, (5, 5), (4, 5), (4, 4), (4, 3)), cells(10, (8, 8), (8, 7))), (), (), ())
    assert read_observation(game.observe(state, "player_0"), game) == state


def test_body_paths_turn_back_from_a_wrong_first_choice():
    # whichever cell the first snake tries first, one order of the heads makes it the second one's only cell
    config = Snake(width=4, height=1, num_apples=0)
    assert share_bodies([1, 3], [0, 2], config) == [(1, 0), (3, 2)]
    assert share_bodies([2, 0], [3, 1], config) == [(2, 3), (0, 1)]


def test_body_cells_that_cannot_be_shared_still_block_the_board():
    config = Snake(width=9, height=9)
    assert share_bodies([0], [80, 1], config) == [(0, 1, 80)]
    every_other = [cell for cell in range(1, 81) if cell != 40]
    snakes = share_bodies([0, 40], every_other, config)
    assert sorted(cell for snake in snakes for cell in snake) == list(range(81))
    assert SEARCH_LIMIT > 0
    assert share_bodies([], [], config) == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "You"),
        ("You: head (3, 3), body none\nEnemy 2: head (10, 3), body none", r"\(10, 3\) is not on a board of 10 by 10"),
        ("You: head (3, 3), body none\nEnemy 2: head (3, 3), body none", "two things are on one cell"),
    ],
)
def test_text_that_is_no_observation_is_refused(text, complaint):
    with pytest.raises(ValueError, match=complaint):
        read_observation(text, Snake())
    with pytest.raises(ValueError, match="10 by 10 cells"):
        read_observation(text, Snake(coordinates=False))
