"""The chances of a round of Snake are listed in full, and a guess is averaged over them without a remainder."""

from collections import Counter
from itertools import pairwise, permutations
from math import comb

import numpy as np
import pytest

from textgames.scenarios import SCENARIOS
from textgames.snake import Snake, SnakeState
from textgames.snake.value import COEFFICIENTS, HORIZON, SnakeValue, distance_table, tour_times
from textgames.yardsticks import HeuristicYardstick, find_yardstick

ME = "player_0"


def told(game, state, action):
    """``{(state, reward, over): probability}``."""
    found = Counter()
    for chance, after, rewards, over in game.outcomes(state, {ME: action}):
        found[after, rewards[ME], over] += chance
    assert sum(found.values()) == pytest.approx(1)
    return found


def test_food_without_an_empty_cell_waits_and_apples_come_first():
    game = Snake(width=2, height=2, num_opponents=0, num_apples=1, num_bananas=1)
    full = SnakeState(((1, 0, 2),), (3,), (), ())
    found = told(game, full, "up")
    assert found == {(SnakeState(((3, 1, 0, 2),), (), (), ()), 1.0, False): pytest.approx(1)}
    one = SnakeState(((0, 2),), (1,), (), ())  # the banana is missing since before, and eating leaves one cell
    assert told(game, one, "right") == {(SnakeState(((1, 0, 2),), (3,), (), ()), 1.0, False): pytest.approx(1)}


def test_too_many_outcomes_are_refused():
    game = Snake(num_opponents=2)
    assert not game.has_outcomes
    state = game.initial_state(np.random.default_rng(0))
    with pytest.raises(NotImplementedError, match="too many outcomes"):
        game.outcomes(state, {ME: "up"})
    assert find_yardstick(game) is None
    with pytest.raises(ValueError, match="needs one of the actions up, down, left, right"):
        Snake().outcomes(Snake().initial_state(np.random.default_rng(0)), {ME: "north"})


# ---------------------------------------------------------------- the guess


@pytest.mark.parametrize("pieces", [1, 3, 5, 7])
def test_tours_are_the_shortest_ones(pieces):
    rng = np.random.default_rng(pieces)
    distances = distance_table(6, 5)
    heads = rng.integers(30, size=20)
    food = np.array([rng.permutation(30)[:pieces] for _ in heads])
    times = tour_times(heads, food, distances)
    assert times.shape == (20, min(pieces, 5))
    for head, cells, row in zip(heads, food, times, strict=True):
        near = sorted(cells, key=lambda cell: distances[head, cell])[:5]
        for count, time in enumerate(row, start=1):
            tours = ((head, *tour) for tour in permutations(near, count))
            assert time == min(sum(distances[a, b] for a, b in pairwise(tour)) for tour in tours)


def boards(name, rounds):
    """Boards of random play, with a joint action each."""
    game = SCENARIOS[name].game() if name in SCENARIOS else Snake(width=4, height=3, num_apples=2, num_fires=1)
    for seed in range(rounds):
        rng = np.random.default_rng(seed)
        state, over = game.initial_state(rng), False
        for left in range(10, 0, -1):
            action = game.actions[int(rng.integers(4))]
            yield game, state, action, left
            state, _, over = game.transition(state, {ME: action}, rng)
            if over:
                break


@pytest.mark.parametrize(("name", "rounds"), [("tiny board", 60), ("snake", 3), ("snake-poison", 3)])
def test_what_is_expected_is_the_mean_over_all_outcomes(name, rounds):
    """The short way to the moments against the enumeration that it shortens."""
    several = 0
    for game, state, action, left in boards(name, rounds):
        value = SnakeValue(game)
        outcomes = game.outcomes(state, {ME: action})
        if len(outcomes) > 3000:
            continue
        several += len(outcomes) > 1
        short = value.moments(state, action, left, ME)
        listed = HeuristicYardstick.moments(value, state, action, left, ME)
        assert short == pytest.approx(listed, abs=1e-9)
        assert value.values(state, left, ME)[action] == pytest.approx(listed.mean)
    assert several > 10


def test_the_guess_by_hand():
    """One apple three moves away and four rounds left: the tour of one piece has a round to spare."""
    game = Snake(width=4, height=1, num_opponents=0, num_apples=1, apple_reward=2.0)
    c, d, a, b, *_ = COEFFICIENTS[3]
    state = SnakeState(((0,),), (3,), (), ())
    value = SnakeValue(game)
    assert value.value(state, 4, ME) == pytest.approx(2 * (c + 4 * d + a + b))
    assert value.value(state, 2, ME) == pytest.approx(2 * (c + 2 * d))
    assert value.value(state, 0, ME) == 0
    assert value.value(state, None, ME) == value.value(state, HORIZON, ME) == value.value(state, 99, ME)
    assert not value.exact


@pytest.mark.parametrize(
    "settings", [{"num_players": 2}, {"num_opponents": 3}, {"apple_reward": -1.0}], ids=["duel", "many", "no good food"]
)
def test_what_it_isnt_for_is_refused(settings):
    with pytest.raises(ValueError, match=r"for one player|too many outcomes|no food"):
        SnakeValue(Snake(**settings))


def test_several_pieces_may_return_at_once():
    game = Snake(num_opponents=1)
    state = SnakeState(((0,), (3,)), (1, 2, 4, 13, 50), (), ())
    counts = {len(told(game, state, action)) for action in ("right", "up")}
    assert max(counts) > comb(90, 2)
    assert SnakeValue(game).moments(state, "right", 8, ME).variance > 0
