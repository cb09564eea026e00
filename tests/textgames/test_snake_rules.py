"""The rules of Snake, one case at a time, beside the slow reference of ``test_snake_reference.py``.

(0, 0) is the bottom left corner and snakes are written head first.
"""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from textgames.snake import Snake, SnakeState

XY = tuple[int, int]


def make_game(num_players: int = 1, **options: Any) -> Snake:
    settings = {"width": 6, "height": 5, "num_opponents": 0, "num_apples": 0} | options
    return Snake(num_players=num_players, **settings)


def state_of(game: Snake, *snakes: list[XY], apples: Any = (), bananas: Any = (), fires: Any = ()) -> SnakeState:
    def cells(items: Any) -> tuple[int, ...]:
        return tuple(y * game.width + x for x, y in items)

    food = [tuple(sorted(cells(kind))) for kind in (apples, bananas, fires)]
    return SnakeState(tuple(cells(snake) for snake in snakes), *food)


def play(game: Snake, state: SnakeState, *actions: str, seed: int = 0) -> tuple[SnakeState, list[float], bool]:
    joint_action = dict(zip(game.players, actions, strict=True))
    after, rewards, terminated = game.transition(state, joint_action, np.random.default_rng(seed))
    return after, [rewards[player] for player in game.players], terminated


ROUNDS: dict[str, tuple[list[list[XY]], str, list[list[XY]], list[float]]] = {
    "up": ([[(2, 2)]], "up", [[(2, 3)]], [0]),
    "down": ([[(2, 2)]], "down", [[(2, 1)]], [0]),
    "left": ([[(2, 2)]], "left", [[(1, 2)]], [0]),
    "right": ([[(2, 2)]], "right", [[(3, 2)]], [0]),
    "the body follows, the tail is given up": ([[(2, 2), (1, 2), (1, 1)]], "up", [[(2, 3), (2, 2), (1, 2)]], [0]),
    "the right edge doesn't wrap into the next row": ([[(5, 0)]], "right", [[]], [-1]),
    "own body": ([[(2, 2), (2, 1), (3, 1), (3, 2), (3, 3), (2, 3)]], "right", [[]], [-1]),
    "own tail, although it would move away": ([[(2, 2), (2, 1), (3, 1), (3, 2)]], "right", [[]], [-1]),
    "a snake of two that reverses": ([[(2, 2), (1, 2)]], "left", [[]], [-1]),
    "the body of another": ([[(1, 2)], [(2, 3), (2, 2), (2, 1)]], "right up", [[], [(2, 4), (2, 3), (2, 2)]], [-1, 0]),
    "the tail of another, although it moves away": ([[(1, 2)], [(2, 3), (2, 2)]], "right up", [[], None], [-1, 0]),
    "a cell that another head leaves": ([[(1, 2)], [(2, 2)]], "right up", [[], [(2, 3)]], [-1, 0]),
    "head to head of two": ([[(1, 2)], [(3, 2)]], "right left", [[], []], [-1, -1]),
    "head to head of three": ([[(1, 2)], [(3, 2)], [(2, 3), (2, 4)]], "right left down", [[], [], []], [-1, -1, -1]),
    "head to head, whatever the length": ([[(1, 2), (0, 2), (0, 1)], [(3, 2)]], "right left", [[], []], [-1, -1]),
    "a swap of heads": ([[(1, 2)], [(2, 2)]], "right left", [[], []], [-1, -1]),
    "a swap of heads of longer snakes": ([[(1, 2), (0, 2)], [(2, 2), (3, 2)]], "right left", [[], []], [-1, -1]),
    "the body of one that dies": ([[(0, 2), (1, 2), (2, 2)], [(2, 1)]], "left up", [[], []], [-1, -1]),
    "who dies on its own tail takes along who enters that cell": (
        [[(1, 2)], [(3, 2), (3, 1), (2, 1), (2, 2)], [(5, 4)]], "right left down", [[], [], [(5, 3)]], [-1, -1, 0],
    ),
    "following at a distance of one is safe": ([[(0, 2)], [(2, 2)]], "right right", [[(1, 2)], [(3, 2)]], [0, 0]),
    "a dead snake is gone": ([[], [(2, 1)]], "up up", [[], [(2, 2)]], [0, 0]),
}  # fmt: skip


@pytest.mark.parametrize("case", ROUNDS)
def test_a_round(case):
    before, actions, expected, paid = ROUNDS[case]
    game = make_game(len(before))
    after, rewards, terminated = play(game, state_of(game, *before), *actions.split())
    for snake, cells in zip(after.snakes, expected, strict=True):
        assert cells is None or snake == state_of(game, cells).snakes[0]
    assert rewards == paid
    assert terminated == (not any(after.snakes))


def test_a_snake_of_one_may_turn_back_and_equal_boards_are_equal_states():
    game = make_game(num_apples=1)
    start = state_of(game, [(2, 2)], apples=((0, 0),))
    back, rewards, _ = play(game, play(game, start, "up")[0], "down")
    assert rewards == [0.0]
    assert {start: "seen"}[back] == "seen"


def test_the_step_reward_is_paid_in_every_round_to_the_living_and_added_to_the_rest():
    game = make_game(2, step_reward=-0.01, num_apples=1)
    state = state_of(game, [(0, 0)], [(3, 3)], apples=((3, 4),))
    state, rewards, _ = play(game, state, "down", "up")
    assert rewards == pytest.approx([-1.01, 0.99])
    assert play(game, state, "up", "left")[1] == pytest.approx([0.0, -0.01])


def test_the_game_ends_when_no_player_lives_whatever_the_opponents_do():
    game = make_game(2, num_opponents=1)
    state, _, terminated = play(game, state_of(game, [(0, 0)], [(5, 4)], [(3, 2)]), "left", "left")
    assert not terminated
    assert [game.is_playing(state, player) for player in game.players] == [False, True]
    assert [game.succeeded(state, player) for player in game.players] == [False, True]
    state, rewards, terminated = play(game, state, "left", "up")
    assert (terminated, rewards) == (True, [0.0, -1.0])
    assert state.snakes[2] != ()
    alone = make_game(num_opponents=1)
    assert not play(alone, state_of(alone, [(0, 0)], []), "up")[2]


# ---------------------------------------------------------------- food


def test_food_may_reappear_where_a_snake_died_or_a_tail_left():
    game = make_game(2, width=4, height=1, num_apples=1)
    for state, expected in (
        (state_of(game, [(1, 0), (0, 0)], [(3, 0)], apples=((2, 0),)), {3}),
        (state_of(game, [(0, 0)], [(3, 0), (2, 0)], apples=((1, 0),)), {2, 3}),
    ):
        assert {play(game, state, "right", "right", seed=seed)[0].apples[0] for seed in range(40)} == expected


def test_a_full_board_keeps_food_back_until_a_cell_is_empty():
    game = make_game(2, width=3, height=2, num_apples=1)
    state = state_of(game, [(1, 0), (0, 0), (0, 1), (1, 1), (2, 1)], [], apples=((2, 0),))
    after, rewards, _ = play(game, state, "right", "up")
    assert (rewards, len(after.snakes[0]), after.apples) == ([1.0, 0.0], 6, ())
    after, rewards, terminated = play(game, after, "up", "up")
    assert (terminated, after.snakes, len(after.apples)) == (True, ((), ()), 1)
    # five cells of snakes and one apple: the banana is missing, and there is no empty cell
    game = make_game(2, width=3, height=2, num_apples=1, num_bananas=1)
    after, _, _ = play(
        game, state_of(game, [(1, 0), (0, 0), (0, 1)], [(1, 1), (2, 1)], apples=((2, 0),)), "right", "up"
    )
    assert sorted([*after.apples, *after.bananas]) == [4, 5]


def test_a_board_that_is_exactly_filled():
    game = Snake(width=3, height=3, num_opponents=2, num_apples=3, num_bananas=2, num_fires=1)
    for seed in range(50):
        state = game.initial_state(np.random.default_rng(seed))
        cells = [cell for snake in state.snakes for cell in snake] + [*state.apples, *state.bananas, *state.fires]
        assert sorted(cells) == list(range(9))
        assert list(state.apples) == sorted(state.apples)


# ---------------------------------------------------------------- boards, numbers of snakes, settings


def test_too_many_snakes_and_too_small_boards_are_refused():
    with pytest.raises(ValueError, match=r"at most 9 snakes.*num_players=5 and num_opponents=5"):
        Snake(num_players=5, num_opponents=5)
    with pytest.raises(ValueError, match=r"width=2 and height=3 make 6 cells, but 2 snakes and 5 pieces.* need 7"):
        Snake(width=2, height=3)
    counts: dict[str, Any] = {"width": np.int64(7), "num_apples": np.int32(2)}
    assert Snake(**counts).num_cells == 70


# ---------------------------------------------------------------- randomness


def opponent_moves(state: SnakeState, game: Snake, rounds: int) -> Counter[tuple[int, ...]]:
    rng = np.random.default_rng(12)
    return Counter(game.transition(state, {"player_0": "up"}, rng)[0].snakes[1] for _ in range(rounds))


@pytest.mark.parametrize(
    ("snake", "expected"),
    [
        ([(3, 2)], {(3, 3), (3, 1), (2, 2), (4, 2)}),
        ([(5, 0)], {(5, 1), (4, 0)}),
        ([(3, 2), (3, 1)], {(3, 3), (2, 2), (4, 2)}),
        ([(3, 1), (4, 1), (4, 2), (3, 2)], {(3, 0), (2, 1)}),
    ],
    ids=["open", "corner", "neck", "tail"],
)
def test_opponent_moves_are_uniform_over_the_polite_ones(snake, expected):
    game = make_game(num_opponents=1)
    seen = opponent_moves(state_of(game, [(0, 0)], snake), game, 4000)
    heads = {(cells[0] % 6, cells[0] // 6): number for cells, number in seen.items()}
    assert set(heads) == expected
    assert chisquare(list(heads.values())).pvalue > 0.001


def test_a_trapped_opponent_takes_any_direction_and_none_avoids_other_snakes():
    game = make_game(num_opponents=1)
    trapped = [(0, 0), (0, 1), (1, 1), (1, 0)]
    assert opponent_moves(state_of(game, [(4, 0)], trapped), game, 200) == {(): 200}
    assert list(game.opponent_targets(state_of(game, trapped).snakes[0])) == [6, -1, -1, 1]
    assert 60 < opponent_moves(state_of(game, [(2, 2), (2, 1)], [(3, 2)]), game, 400)[()] < 140


@pytest.mark.parametrize("crowded", [False, True])
def test_reappearing_food_is_uniform_over_the_empty_cells(crowded):
    """With 3 empty cells of 64, half of the draws come from the list of empty cells."""
    if crowded:
        game = make_game(width=8, height=8, num_apples=60)
        state = SnakeState(((0,),), tuple(range(1, 61)), (), ())
    else:
        game = make_game(width=4, height=4, num_apples=3)
        state = state_of(game, [(1, 1), (0, 1)], apples=((2, 1), (0, 0), (3, 3)))
    rng, seen = np.random.default_rng(5), Counter[int]()
    for _ in range(5000):
        after = game.transition(state, {"player_0": "right"}, rng)[0]
        seen.update(set(after.apples) - set(state.apples))
    kept = set(state.apples) - set(after.snakes[0])
    assert set(seen) == set(range(game.num_cells)) - kept - set(after.snakes[0])
    assert chisquare(list(seen.values())).pvalue > 0.001


# ---------------------------------------------------------------- cell 0 is a cell like any other


def test_the_first_cell_is_found_when_it_is_the_last_one_that_is_empty():
    """By the list of empty cells, as hardly a random try meets one of a hundred."""
    game = Snake(width=10, height=10, num_opponents=0, num_apples=1)
    state = SnakeState((tuple(range(2, 100)),), (1,), (), ())
    for seed in range(5):
        after, rewards, _ = play(game, state, "left", seed=seed)
        assert (rewards, after.apples) == ([1.0], (0,))


def test_who_dies_on_the_first_cell_has_not_hit_a_wall():
    game = Snake(width=5, height=5, num_players=2, num_opponents=0, num_apples=0)
    state, joint = SnakeState(((1,), (0, 5)), (), (), ()), {"player_0": "left", "player_1": "right"}
    after, _, _ = game.transition(state, joint, np.random.default_rng(0))
    assert after.snakes[0] == ()
    assert game.what_happened(state, joint, after, "player_0").startswith("ran into")
