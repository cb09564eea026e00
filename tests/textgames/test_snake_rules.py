"""The rules of Snake, one case at a time; (0, 0) is the bottom left corner and snakes are written head first."""

import copy
import pickle
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


def state_of(
    game: Snake,
    *snakes: list[XY],
    apples: tuple[XY, ...] = (),
    bananas: tuple[XY, ...] = (),
    fires: tuple[XY, ...] = (),
) -> SnakeState:
    def cells(items: Any) -> tuple[int, ...]:
        return tuple(y * game.width + x for x, y in items)

    food = [tuple(sorted(cells(kind))) for kind in (apples, bananas, fires)]
    return SnakeState(tuple(cells(snake) for snake in snakes), *food)


def snake_xy(game: Snake, state: SnakeState, i: int = 0) -> list[XY]:
    return [(cell % game.width, cell // game.width) for cell in state.snakes[i]]


def play(game: Snake, state: SnakeState, *actions: str, seed: int = 0) -> tuple[SnakeState, list[float], bool]:
    """One round; ``actions[i]`` is player i's."""
    joint_action = dict(zip(game.players, actions, strict=True))
    after, rewards, terminated = game.transition(state, joint_action, np.random.default_rng(seed))
    return after, [rewards[player] for player in game.players], terminated


# ---------------------------------------------------------------- moving


@pytest.mark.parametrize(("action", "head"), [("up", (2, 3)), ("down", (2, 1)), ("left", (1, 2)), ("right", (3, 2))])
def test_each_action_moves_the_head_by_one_cell(action: str, head: XY) -> None:
    game = make_game()
    after, rewards, terminated = play(game, state_of(game, [(2, 2)]), action)
    assert snake_xy(game, after) == [head]
    assert rewards == [0.0]
    assert not terminated


def test_the_body_follows_the_head_and_the_tail_is_given_up() -> None:
    game = make_game()
    after, _, _ = play(game, state_of(game, [(2, 2), (1, 2), (1, 1)]), "up")
    assert snake_xy(game, after) == [(2, 3), (2, 2), (1, 2)]


def test_step_reward_is_paid_in_every_round_to_the_living_and_added_to_the_rest() -> None:
    game = make_game(2, step_reward=-0.01, num_apples=1)
    state = state_of(game, [(0, 0)], [(3, 3)], apples=((3, 4),))
    state, rewards, _ = play(game, state, "down", "up")
    assert rewards == pytest.approx([-1.01, 0.99])
    _, rewards, _ = play(game, state, "up", "left")
    assert rewards == pytest.approx([0.0, -0.01])


# ---------------------------------------------------------------- collisions


@pytest.mark.parametrize(("action", "start"), [("up", (3, 4)), ("down", (3, 0)), ("left", (0, 2)), ("right", (5, 2))])
def test_wall_on_each_side(action: str, start: XY) -> None:
    game = make_game()
    after, rewards, terminated = play(game, state_of(game, [start]), action)
    assert after.snakes == ((),)
    assert rewards == [-1.0]
    assert terminated


def test_right_edge_does_not_wrap_into_the_next_row() -> None:
    game = make_game()
    after, _, _ = play(game, state_of(game, [(5, 0)]), "right")
    assert after.snakes == ((),)


def test_own_body() -> None:
    game = make_game()
    curl = [(2, 2), (2, 1), (3, 1), (3, 2), (3, 3), (2, 3)]
    after, rewards, _ = play(game, state_of(game, curl), "right")
    assert after.snakes == ((),)
    assert rewards == [-1.0]


def test_own_tail_kills_although_it_would_move_away() -> None:
    game = make_game()
    ring = [(2, 2), (2, 1), (3, 1), (3, 2)]
    after, rewards, _ = play(game, state_of(game, ring), "right")
    assert after.snakes == ((),)
    assert rewards == [-1.0]


def test_snake_of_length_two_that_reverses_enters_its_own_tail() -> None:
    game = make_game()
    after, rewards, _ = play(game, state_of(game, [(2, 2), (1, 2)]), "left")
    assert after.snakes == ((),)
    assert rewards == [-1.0]


def test_snake_of_length_one_may_turn_back() -> None:
    game = make_game()
    after, _, _ = play(game, state_of(game, [(2, 2)]), "left")
    after, rewards, _ = play(game, after, "right")
    assert snake_xy(game, after) == [(2, 2)]
    assert rewards == [0.0]


def test_body_of_another_snake() -> None:
    game = make_game(2)
    after, rewards, terminated = play(game, state_of(game, [(1, 2)], [(2, 3), (2, 2), (2, 1)]), "right", "up")
    assert snake_xy(game, after, 0) == []
    assert snake_xy(game, after, 1) == [(2, 4), (2, 3), (2, 2)]
    assert rewards == [-1.0, 0.0]
    assert not terminated


def test_tail_of_another_snake_kills_although_it_moves_away() -> None:
    game = make_game(2)
    after, rewards, _ = play(game, state_of(game, [(1, 2)], [(2, 3), (2, 2)]), "right", "up")
    assert after.snakes[0] == ()
    assert rewards == [-1.0, 0.0]


def test_cell_that_another_head_leaves() -> None:
    game = make_game(2)
    after, rewards, _ = play(game, state_of(game, [(1, 2)], [(2, 2)]), "right", "up")
    assert after.snakes[0] == ()
    assert snake_xy(game, after, 1) == [(2, 3)]
    assert rewards == [-1.0, 0.0]


def test_head_to_head_of_two_kills_both() -> None:
    game = make_game(2)
    after, rewards, terminated = play(game, state_of(game, [(1, 2)], [(3, 2)]), "right", "left")
    assert after.snakes == ((), ())
    assert rewards == [-1.0, -1.0]
    assert terminated


def test_head_to_head_of_three_kills_all_three() -> None:
    game = make_game(3)
    state = state_of(game, [(1, 2)], [(3, 2)], [(2, 3), (2, 4)])
    after, rewards, terminated = play(game, state, "right", "left", "down")
    assert after.snakes == ((), (), ())
    assert rewards == [-1.0, -1.0, -1.0]
    assert terminated


def test_head_to_head_does_not_care_about_length() -> None:
    game = make_game(2)
    state = state_of(game, [(1, 2), (0, 2), (0, 1), (0, 0)], [(3, 2)])
    after, _, _ = play(game, state, "right", "left")
    assert after.snakes == ((), ())


def test_swap_of_heads_kills_both() -> None:
    game = make_game(2)
    after, rewards, _ = play(game, state_of(game, [(1, 2)], [(2, 2)]), "right", "left")
    assert after.snakes == ((), ())
    assert rewards == [-1.0, -1.0]


def test_swap_of_heads_of_longer_snakes_kills_both() -> None:
    game = make_game(2)
    after, _, _ = play(game, state_of(game, [(1, 2), (0, 2)], [(2, 2), (3, 2)]), "right", "left")
    assert after.snakes == ((), ())


def test_two_into_one_food_cell_die_and_the_food_stays() -> None:
    game = make_game(2, num_apples=1)
    state = state_of(game, [(1, 2)], [(3, 2)], apples=((2, 2),))
    after, rewards, _ = play(game, state, "right", "left")
    assert after.snakes == ((), ())
    assert rewards == [-1.0, -1.0]
    assert after.apples == state.apples


def test_body_of_a_dying_neighbour_still_kills_in_this_round() -> None:
    game = make_game(2)
    dying = [(0, 2), (1, 2), (2, 2)]
    after, rewards, _ = play(game, state_of(game, dying, [(2, 1)]), "left", "up")
    assert after.snakes == ((), ())
    assert rewards == [-1.0, -1.0]


def test_neighbour_that_dies_on_its_own_tail_takes_whoever_enters_that_cell_along() -> None:
    game = make_game(3)
    state = state_of(game, [(1, 2)], [(3, 2), (3, 1), (2, 1), (2, 2)], [(5, 4)])
    after, rewards, _ = play(game, state, "right", "left", "down")
    assert after.snakes[:2] == ((), ())
    assert rewards == [-1.0, -1.0, 0.0]


def test_dead_snake_leaves_the_board_after_the_round() -> None:
    game = make_game(2)
    after, _, _ = play(game, state_of(game, [(0, 2), (1, 2), (2, 2)], [(2, 0)]), "left", "up")
    after, rewards, _ = play(game, after, "up", "up")
    assert snake_xy(game, after, 1) == [(2, 2)]
    assert rewards == [0.0, 0.0]


def test_following_at_a_distance_of_one_is_safe() -> None:
    game = make_game(2)
    after, rewards, _ = play(game, state_of(game, [(0, 2)], [(2, 2)]), "right", "right")
    assert rewards == [0.0, 0.0]
    assert after.snakes == state_of(game, [(1, 2)], [(3, 2)]).snakes


# ---------------------------------------------------------------- players


def test_action_of_a_dead_player_is_ignored_and_may_be_missing_and_pays_nothing() -> None:
    game = make_game(2, step_reward=-0.5)
    state = state_of(game, [], [(3, 3)])
    with_action = play(game, state, "left", "up")
    without, rewards, _ = game.transition(state, {"player_1": "up"}, np.random.default_rng(0))
    assert with_action[0] == without == state_of(game, [], [(3, 4)])
    assert rewards == {"player_0": 0.0, "player_1": -0.5}
    assert with_action[1] == [0.0, -0.5]


def test_game_ends_when_no_player_lives_whatever_the_opponents_do() -> None:
    game = make_game(2, num_opponents=1)
    state = state_of(game, [(0, 0)], [(5, 4)], [(3, 2)])
    state, _, terminated = play(game, state, "left", "left")
    assert not terminated
    assert [game.is_playing(state, player) for player in game.players] == [False, True]
    assert [game.succeeded(state, player) for player in game.players] == [False, True]
    state, rewards, terminated = play(game, state, "left", "up")
    assert terminated
    assert rewards == [0.0, -1.0]
    assert state.snakes[2] != ()


def test_game_goes_on_when_the_opponent_is_dead() -> None:
    game = make_game(num_opponents=1)
    state, _, terminated = play(game, state_of(game, [(0, 0)], []), "up")
    assert not terminated
    assert state.snakes[1] == ()


@pytest.mark.parametrize("joint_action", [{}, {"player_0": "north"}, {"player_0": "UP"}, {"player_1": "up"}])
def test_missing_player_or_unknown_action_is_refused(joint_action: dict[str, str]) -> None:
    game = make_game()
    with pytest.raises(ValueError, match=r"up, down, left, right.*player_0"):
        game.transition(state_of(game, [(2, 2)]), joint_action, np.random.default_rng(0))


# ---------------------------------------------------------------- food


def test_growth_keeps_the_tail() -> None:
    game = make_game(num_apples=1)
    state = state_of(game, [(2, 2), (1, 2)], apples=((3, 2),))
    after, rewards, _ = play(game, state, "right")
    assert snake_xy(game, after) == [(3, 2), (2, 2), (1, 2)]
    assert rewards == [1.0]
    after, rewards, _ = play(game, after._replace(apples=(0,)), "up")
    assert snake_xy(game, after) == [(3, 3), (3, 2), (2, 2)]
    assert rewards == [0.0]


@pytest.mark.parametrize(("kind", "worth"), [("apples", 2.0), ("bananas", 0.25), ("fires", -3.0)])
def test_every_kind_of_food_pays_its_reward_grows_and_reappears(kind: str, worth: float) -> None:
    game = make_game(num_apples=1, num_bananas=1, num_fires=1, apple_reward=2, banana_reward=0.25, fire_reward=-3)
    places = {"apples": (0, 0), "bananas": (0, 1), "fires": (0, 2)} | {kind: (3, 2)}
    state = state_of(game, [(2, 2)], **{name: (place,) for name, place in places.items()})
    after, rewards, _ = play(game, state, "right")
    assert rewards == [worth]
    assert snake_xy(game, after) == [(3, 2), (2, 2)]
    for name in places:
        (cell,) = getattr(after, name)
        assert (cell == getattr(state, name)[0]) == (name != kind)
        assert cell not in after.snakes[0]


def test_poison_apple_takes_a_reward_away_and_still_grows() -> None:
    game = make_game(num_apples=1, apple_reward=-1)
    after, rewards, terminated = play(game, state_of(game, [(2, 2)], apples=((2, 3),)), "up")
    assert rewards == [-1.0]
    assert len(after.snakes[0]) == 2
    assert not terminated


def test_dying_snake_does_not_eat() -> None:
    # the head meets another one on the apple; also with several kinds on the board
    game = make_game(2, num_apples=1, num_bananas=1)
    state = state_of(game, [(1, 2)], [(3, 2)], apples=((2, 2),), bananas=((0, 0),))
    after, rewards, _ = play(game, state, "right", "left")
    assert rewards == [-1.0, -1.0]
    assert after[1:] == state[1:]


def test_opponents_eat_too() -> None:
    corridor = Snake(width=4, height=1, num_opponents=1, num_apples=1)
    state = state_of(corridor, [], [(1, 0), (0, 0)], apples=((2, 0),))
    after, rewards, _ = play(corridor, state, "right")
    assert snake_xy(corridor, after, 1) == [(2, 0), (1, 0), (0, 0)]
    assert rewards == [0.0]
    assert len(after.apples) == 1


def test_food_may_reappear_where_a_snake_died_or_a_tail_left() -> None:
    game = make_game(2, width=4, height=1, num_apples=1)
    state = state_of(game, [(1, 0), (0, 0)], [(3, 0)], apples=((2, 0),))
    cells = {play(game, state, "right", "right", seed=seed)[0].apples[0] for seed in range(40)}
    assert cells == {3}
    state = state_of(game, [(0, 0)], [(3, 0), (2, 0)], apples=((1, 0),))
    cells = {play(game, state, "right", "right", seed=seed)[0].apples[0] for seed in range(40)}
    assert cells == {2, 3}


def test_full_board_keeps_food_back_until_a_cell_is_empty() -> None:
    game = make_game(2, width=3, height=2, num_apples=1)
    state = state_of(game, [(1, 0), (0, 0), (0, 1), (1, 1), (2, 1)], [], apples=((2, 0),))
    after, rewards, _ = play(game, state, "right", "up")
    assert rewards == [1.0, 0.0]
    assert len(after.snakes[0]) == 6
    assert after.apples == ()
    after, rewards, terminated = play(game, after, "up", "up")
    assert terminated
    assert after.snakes == ((), ())
    assert len(after.apples) == 1


def test_food_comes_back_piece_by_piece_as_cells_become_empty() -> None:
    game = make_game(2, width=3, height=2, num_apples=1, num_bananas=1)
    # five cells of snakes and one apple: the banana is missing, and there is no empty cell
    state = state_of(game, [(1, 0), (0, 0), (0, 1)], [(1, 1), (2, 1)], apples=((2, 0),))
    after, _, _ = play(game, state, "right", "up")
    assert snake_xy(game, after) == [(2, 0), (1, 0), (0, 0), (0, 1)]
    assert sorted([*after.apples, *after.bananas]) == [4, 5]


def test_initial_state_on_a_board_that_is_exactly_filled() -> None:
    game = Snake(width=3, height=3, num_opponents=2, num_apples=3, num_bananas=2, num_fires=1)
    for seed in range(50):
        state = game.initial_state(np.random.default_rng(seed))
        cells = [cell for snake in state.snakes for cell in snake] + [*state.apples, *state.bananas, *state.fires]
        assert sorted(cells) == list(range(9))
        assert list(state.apples) == sorted(state.apples)


# ---------------------------------------------------------------- boards and numbers of snakes


@pytest.mark.parametrize(("width", "height"), [(7, 3), (3, 7), (1, 8), (8, 1), (1, 1)])
def test_walls_of_non_square_boards(width: int, height: int) -> None:
    game = Snake(width=width, height=height, num_opponents=0, num_apples=0)
    for x in range(width):
        for y in range(height):
            for action, (dx, dy) in {"up": (0, 1), "down": (0, -1), "left": (-1, 0), "right": (1, 0)}.items():
                after, _, terminated = play(game, state_of(game, [(x, y)]), action)
                inside = 0 <= x + dx < width and 0 <= y + dy < height
                assert snake_xy(game, after) == ([(x + dx, y + dy)] if inside else [])
                assert terminated != inside


def test_nine_snakes_of_both_kinds_play_together() -> None:
    game = Snake(num_players=4, num_opponents=5)
    assert game.players == ("player_0", "player_1", "player_2", "player_3")
    rng = np.random.default_rng(1)
    state = game.initial_state(rng)
    assert len(set(state.snakes)) == 9
    state, rewards, _ = game.transition(state, dict.fromkeys(game.players, "up"), rng)
    assert list(rewards) == list(game.players)
    assert len(state.snakes) == 9


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("width", 0),
        ("width", 2.5),
        ("width", "10"),
        ("height", -1),
        ("height", True),
        ("num_players", 0),
        ("num_opponents", -1),
        ("num_apples", -1),
        ("num_bananas", 1.5),
        ("num_fires", None),
        ("apple_reward", float("nan")),
        ("banana_reward", float("inf")),
        ("fire_reward", "1"),
        ("death_reward", None),
        ("step_reward", True),
    ],
)
def test_bad_setting_is_named_with_its_value(setting: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"{setting} must be .*got {value!r}"):
        Snake(**{setting: value})


def test_too_many_snakes_and_too_small_boards_are_refused() -> None:
    with pytest.raises(ValueError, match=r"at most 9 snakes.*num_players=5 and num_opponents=5"):
        Snake(num_players=5, num_opponents=5)
    with pytest.raises(ValueError, match=r"width=2 and height=3 make 6 cells, but 2 snakes and 5 pieces.* need 7"):
        Snake(width=2, height=3)


def test_numpy_integers_are_accepted_as_settings() -> None:
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
def test_opponent_moves_are_uniform_over_the_polite_ones(snake: list[XY], expected: set[XY]) -> None:
    game = make_game(num_opponents=1)
    seen = opponent_moves(state_of(game, [(0, 0)], snake), game, 4000)
    heads = {(cells[0] % 6, cells[0] // 6): number for cells, number in seen.items()}
    assert set(heads) == expected
    assert chisquare(list(heads.values())).pvalue > 0.001


def test_trapped_opponent_moves_in_any_of_the_four_directions_and_dies() -> None:
    game = make_game(num_opponents=1)
    trapped = [(0, 0), (0, 1), (1, 1), (1, 0)]
    assert opponent_moves(state_of(game, [(4, 0)], trapped), game, 200) == {(): 200}
    options = game.opponent_targets(state_of(game, trapped).snakes[0])
    assert list(options) == [6, -1, -1, 1]


def test_opponent_does_not_avoid_other_snakes() -> None:
    game = make_game(num_opponents=1)
    seen = opponent_moves(state_of(game, [(2, 2), (2, 1)], [(3, 2)]), game, 400)
    assert 60 < seen[()] < 140


def test_reappearing_food_is_uniform_over_the_empty_cells() -> None:
    game = make_game(width=4, height=4, num_apples=3)
    state = state_of(game, [(1, 1), (0, 1)], apples=((2, 1), (0, 0), (3, 3)))
    rng = np.random.default_rng(5)
    taken = {state.apples[0], state.apples[2], *state_of(game, [(2, 1), (1, 1), (0, 1)]).snakes[0]}
    seen: Counter[int] = Counter()
    for _ in range(6000):
        apples = game.transition(state, {"player_0": "right"}, rng)[0].apples
        (new,) = set(apples) - taken
        seen[new] += 1
    assert set(seen) == set(range(16)) - taken
    assert chisquare(list(seen.values())).pvalue > 0.001


def test_reappearing_food_is_uniform_on_a_nearly_full_board_too() -> None:
    # 3 empty cells of 64: half of the draws come from the list of empty cells
    game = make_game(width=8, height=8, num_apples=60)
    snake = state_of(game, [(0, 0)]).snakes[0]
    state = SnakeState((snake,), tuple(range(1, 61)), (), ())
    rng = np.random.default_rng(6)
    seen: Counter[int] = Counter()
    for _ in range(3000):
        apples = game.transition(state, {"player_0": "right"}, rng)[0].apples
        seen.update(set(apples) - set(range(2, 61)))
    assert set(seen) == {61, 62, 63}
    assert chisquare(list(seen.values())).pvalue > 0.001


def test_initial_cells_are_uniform_for_every_item() -> None:
    game = Snake(width=4, height=3, num_opponents=1, num_apples=3, num_bananas=2)
    rng = np.random.default_rng(7)
    seen: dict[str, Counter[int]] = {name: Counter() for name in ("player", "opponent", "apples", "bananas")}
    for _ in range(4000):
        state = game.initial_state(rng)
        seen["player"].update(state.snakes[0])
        seen["opponent"].update(state.snakes[1])
        seen["apples"].update(state.apples)
        seen["bananas"].update(state.bananas)
    for counter in seen.values():
        assert len(counter) == 12
        assert chisquare(list(counter.values())).pvalue > 0.001


# ---------------------------------------------------------------- purity


def test_transition_is_a_function_of_state_actions_and_generator() -> None:
    game = Snake(num_players=2, num_opponents=2, num_apples=20, width=6, height=6)
    rng = np.random.default_rng(3)
    for _ in range(300):
        state = game.initial_state(rng)
        before = copy.deepcopy(state)
        joint_action = {player: str(rng.choice(game.actions)) for player in game.players}
        kept = dict(joint_action)
        twin = copy.deepcopy(rng)
        first = game.transition(state, joint_action, rng)
        second = Snake(num_players=2, num_opponents=2, num_apples=20, width=6, height=6).transition(
            state, joint_action, twin
        )
        assert first == second
        assert rng.bit_generator.state == twin.bit_generator.state
        assert state == before
        assert joint_action == kept


def test_states_are_hashable_values_that_meet_again() -> None:
    game = make_game(num_apples=1)
    start = state_of(game, [(2, 2)], apples=((0, 0),))
    there, _, _ = play(game, start, "up")
    back, _, _ = play(game, there, "down")
    assert back == start
    assert hash(back) == hash(start)
    assert {start: "seen"}[back] == "seen"
    assert pickle.loads(pickle.dumps(start)) == start


def test_equal_boards_are_equal_states_whatever_was_eaten_in_between() -> None:
    game = make_game(num_apples=3, width=3, height=3)
    rng = np.random.default_rng(0)
    for _ in range(200):
        state = game.initial_state(rng)
        for _ in range(6):
            state, _, over = game.transition(state, {"player_0": str(rng.choice(game.actions))}, rng)
            assert list(state.apples) == sorted(state.apples)
            if over:
                break


def test_game_can_be_copied_and_pickled() -> None:
    game = Snake(num_bananas=2, axes=True)
    state = game.initial_state(np.random.default_rng(0))
    for twin in (copy.deepcopy(game), pickle.loads(pickle.dumps(game))):
        assert twin.observe(state, "player_0") == game.observe(state, "player_0")
        assert twin.transition(state, {"player_0": "up"}, np.random.default_rng(4)) == game.transition(
            state, {"player_0": "up"}, np.random.default_rng(4)
        )


@pytest.mark.parametrize(("start", "move"), [(1, "left"), (5, "down")])
@pytest.mark.parametrize("food", ["", "apple", "banana", "fire"])
def test_the_first_cell_is_a_cell_like_any_other(start: int, move: str, food: str) -> None:
    """Cell 0 is entered, eaten on and left again; only what is off the board is a wall."""
    numbers: dict[str, Any] = {f"num_{name}s": int(name == food) for name in ("apple", "banana", "fire")}
    game = Snake(width=5, height=5, num_opponents=0, step_reward=-0.125, **numbers)
    pieces = {name: (0,) if name == food else () for name in ("apple", "banana", "fire")}
    state = SnakeState(((start,),), pieces["apple"], pieces["banana"], pieces["fire"])
    paid = {"": 0.0, "apple": 1.0, "banana": 1.0, "fire": -1.0}[food] - 0.125
    for seed in range(3):
        after, rewards, over = game.transition(state, {"player_0": move}, np.random.default_rng(seed))
        assert (rewards, over) == ({"player_0": paid}, False)
        assert after.snakes == (((0, start) if food else (0,)),)
        assert len([*after.apples, *after.bananas, *after.fires]) == bool(food)
        back, _, _ = game.transition(after, {"player_0": "up" if move == "left" else "right"}, np.random.default_rng(0))
        assert back.snakes[0][0] == (5 if move == "left" else 1)
    for way in ("left", "down"):
        after, rewards, over = game.transition(
            SnakeState(((0,),), (), (), ()), {"player_0": way}, np.random.default_rng(0)
        )
        assert (after.snakes, rewards, over) == (((),), {"player_0": -1.125}, True)


def test_food_is_drawn_on_the_first_cell_as_on_every_other() -> None:
    game, drawn = Snake(width=3, height=2, num_opponents=0, num_apples=1), Counter[int]()
    for seed in range(600):
        state = game.initial_state(np.random.default_rng(seed))
        drawn[state.apples[0]] += 1
        drawn[state.snakes[0][0]] += 1
    assert set(drawn) == set(range(6))
    assert all(abs(count - 200) < 60 for count in drawn.values())


def test_the_first_cell_is_found_when_it_is_the_last_one_that_is_empty() -> None:
    """By the list of empty cells, as hardly a random try meets one of a hundred."""
    game = Snake(width=10, height=10, num_opponents=0, num_apples=1)
    body = tuple(range(2, 100))
    state = SnakeState((body,), (1,), (), ())
    for seed in range(5):
        after, rewards, _ = game.transition(state, {"player_0": "left"}, np.random.default_rng(seed))
        assert (rewards["player_0"], after.apples) == (1.0, (0,))


def test_who_dies_on_the_first_cell_has_not_hit_a_wall() -> None:
    game = Snake(width=5, height=5, num_players=2, num_opponents=0, num_apples=0)
    state, joint = SnakeState(((1,), (0, 5)), (), (), ()), {"player_0": "left", "player_1": "right"}
    after, _, _ = game.transition(state, joint, np.random.default_rng(0))
    assert after.snakes[0] == ()
    assert game.what_happened(state, joint, after, "player_0").startswith("ran into")
