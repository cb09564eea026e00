"""The sliding puzzle: its table against the literature and a search of its own, and the values against brute force."""

import numpy as np
import pytest

from tests.textgames.test_every_scenario import searched
from textgames.planning.sliding_puzzle import GOAL, SlidingPuzzle, SlidingState, SlidingYardstick, distance, layers

RNG = np.random.default_rng(0)
# positions at each distance from the goal with the gap in a corner: sequence A089473 of the OEIS
LAYERS = """1 2 4 8 16 20 39 62 116 152 286 396 748 1024 1893 2512 4485 5638 9529 10878 16993 17110 23952 20224
24047 15578 14560 6274 3910 760 221 2"""


def play(game: SlidingPuzzle, state: SlidingState, *tiles: str) -> tuple[SlidingState, float, bool]:
    total, over = 0.0, False
    for tile in tiles:
        state, rewards, over = game.transition(state, {"player_0": tile}, RNG)
        total += rewards["player_0"]
    return state, total, over


def test_the_table_is_that_of_the_literature():
    assert [len(layer) for layer in layers()] == [int(size) for size in LAYERS.split()]
    assert sum(map(len, layers())) == 181_440
    assert sum(moves * len(layer) for moves, layer in enumerate(layers())) / 181_440 == pytest.approx(21.97, abs=0.005)
    with pytest.raises(ValueError, match="can't be reached from '123456870'"):
        distance("123456870")


def test_slides_pay_and_the_goal_ends():
    game = SlidingPuzzle()
    state = SlidingState("123450786")
    assert game.legal_actions(state, "player_0") == ("3", "5", "6")
    assert play(game, state, "6") == (SlidingState(GOAL, 1), pytest.approx(0.98), True)
    state, total, over = play(game, state, "3", "3")
    assert (state, total, over) == (SlidingState("123450786", 2), pytest.approx(-0.04), False)
    with pytest.raises(ValueError, match=r"one of 3, 5, 6, got \{'player_0': '8'\}"):
        play(game, state, "8")
    with pytest.raises(ValueError, match="one of 3, 5, 6"):
        game.transition(state, {}, RNG)


def test_the_last_move_ends_the_game_unsolved():
    game = SlidingPuzzle(max_moves=8)
    state, total, over = play(game, SlidingState("123450786"), *["3"] * 8)
    assert over
    assert total == pytest.approx(game.return_range[0])
    assert not game.succeeded(state, "player_0")
    assert play(game, state, "6") == (state, 0.0, True)


def test_starts_are_drawn_by_layer():
    game = SlidingPuzzle(min_distance=1, max_distance=3)
    chances: dict[int, float] = {}
    for chance, state in game.initial_outcomes():
        chances[distance(state.tiles)] = chances.get(distance(state.tiles), 0.0) + chance
    assert chances == pytest.approx({1: 1 / 3, 2: 1 / 3, 3: 1 / 3})
    assert len(game.initial_outcomes()) == 2 + 4 + 8


def test_the_games_own_limit_counts_in_its_values():
    game = SlidingPuzzle(min_distance=2, max_distance=6, max_moves=9, step_reward=-0.1, goal_reward=2.0)
    for seed in range(6):
        late = game.initial_state(np.random.default_rng(seed))._replace(moves=6)
        best = {action: value for action, (value, _) in searched(game, late, 3, "player_0").items()}
        assert SlidingYardstick(game).values(late, None, "player_0") == pytest.approx(best)


def test_metrics_and_what_happened():
    game = SlidingPuzzle()
    near, far = SlidingState("123450786"), SlidingState("120453786", 1)
    assert game.metrics(far, "player_0") == {"distance_left": 2.0}
    assert game.what_happened(near, {"player_0": "3"}, far, "player_0") == "farther from the goal: 2 moves away"
    assert game.what_happened(far, {"player_0": "3"}, near, "player_0") == "nearer to the goal: 1 move away"
    assert game.board(near) == ("123", "45_", "786")
