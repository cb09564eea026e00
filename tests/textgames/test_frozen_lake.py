"""Frozen Lake against Gymnasium's own: the whole transition table, the maps, and the exact solver."""

import copy
import pickle

import numpy as np
import pytest
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
from gymnasium.envs.toy_text.frozen_lake import is_valid as gymnasium_is_valid
from hypothesis import given, settings
from hypothesis import strategies as st

from textgames.frozen_lake import FrozenLake, FrozenLakeState, Lake
from textgames.frozen_lake.rules import ACTIONS, draw_lake, is_solvable
from textgames.frozen_lake.text import TextStyle, observation, read_observation
from textgames.solving.value_iteration import ValueIteration

DYNAMICS = [(False, 1 / 3), (True, 1 / 3), (True, 0.8), (True, 0.0), (True, 1.0)]


def lakes(count: int, *, sizes: tuple[int, ...] = (2, 3, 4, 5, 8)) -> list[Lake]:
    rng = np.random.default_rng(0)
    return [draw_lake(sizes[i % len(sizes)], (0.6, 0.8, 0.95)[i % 3], rng) for i in range(count)]


@pytest.mark.parametrize(("is_slippery", "success_rate"), DYNAMICS)
def test_transition_table_is_gymnasiums(is_slippery, success_rate):
    others = [Lake.from_desc(desc) for desc in (("SFFG",), ("SF", "FF", "FG"), ("SHF", "FFG"), ("SFS", "GHF"))]
    for lake in (*lakes(60), *others):
        desc = [lake.tiles[start : start + lake.ncol] for start in range(0, len(lake.tiles), lake.ncol)]
        table = FrozenLakeEnv(desc=desc, is_slippery=is_slippery, success_rate=success_rate).P
        game = FrozenLake(is_slippery=is_slippery, success_rate=success_rate)
        for cell in range(len(lake.tiles)):
            for action, name in enumerate(ACTIONS):
                listed = game.outcomes(FrozenLakeState(lake, cell), {"player_0": name})
                ours = [(chance, state.position, paid["player_0"], over) for chance, state, paid, over in listed]
                assert ours == [each for each in table[cell][action] if each[0]]


def test_chances_of_slips_are_told():
    told = FrozenLake(is_slippery=True, success_rate=0.8).instructions("player_0")
    assert "with probability 0.8, and in each of the two directions perpendicular to it with probability 0.1." in told


@given(st.integers(2, 9), st.integers(2, 9), st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_solvability_agrees_with_gymnasiums_search(nrow, ncol, random):
    rng = np.random.default_rng(random.getrandbits(32))  # type: ignore[attr-defined]
    size = nrow  # Gymnasium's search knows square maps only
    frozen = rng.random((size, size)) < rng.uniform(0.3, 0.9)
    board = np.where(frozen, "F", "H")
    board[0, 0], board[-1, -1] = "S", "G"
    safe = sum(1 << i for i, tile in enumerate(board.ravel()) if tile != "H")
    assert is_solvable(safe, size) == gymnasium_is_valid(board.tolist(), size)


def test_maps_are_drawn_with_the_probability_asked_for():
    """On large maps almost every draw has a path, so that the share of ice is the probability."""
    rng = np.random.default_rng(0)
    tiles = "".join(draw_lake(20, 0.9, rng).tiles for _ in range(50))
    ice = tiles.count("F") / (tiles.count("F") + tiles.count("H"))
    assert abs(ice - 0.9) < 5 * (0.09 / len(tiles)) ** 0.5 + 0.002  # the second term: maps without a path are left out


def test_the_solver_does_not_dawdle():
    """With steps to spare every detour is as good as the shortest way; it takes the shortest way all the same."""
    game = FrozenLake()
    solver = ValueIteration(game)
    for lake in lakes(30, sizes=(4, 5)):
        state, steps = FrozenLakeState(lake, 0), 0
        fewest = next(n for n in range(1, 30) if solver.value(state, n, "player_0") == 1)
        while game.is_playing(state, "player_0"):
            action = solver.best_actions(state, 29 - steps, "player_0")[0]
            state, _, _ = game.transition(state, {"player_0": action}, np.random.default_rng(0))
            steps += 1
        assert steps == fewest


@pytest.mark.parametrize(
    "style",
    [
        TextStyle(),
        TextStyle(grid=False),
        TextStyle(coordinates=False),
        TextStyle(axes=True),
        TextStyle(relative=True),
        TextStyle(relative=True, grid=False),
    ],
)
def test_an_observation_tells_the_whole_state(style):
    for lake in lakes(60, sizes=(2, 4, 11)):
        start = lake.tiles.replace("S", "F")
        for cell in range(0, len(lake.tiles), 3):
            state = FrozenLakeState(lake, cell)
            text = observation(state, style)
            if not style.coordinates and lake.tiles[cell] in "HG":
                continue  # the player's mark hides the tile under it
            read = read_observation(text)
            assert read.position == cell
            assert read.lake.tiles.replace("S", "F") == start
            assert observation(read, style) == text


def test_positions_may_be_told_as_seen_from_the_player():
    game = FrozenLake(desc=("SHF", "FFG"), relative=True, grid=False)
    state = game.initial_state(np.random.default_rng(0))
    told = game.observe(state, "player_0").splitlines()
    assert told[1:] == [
        "Player: (0, 1)",
        "Holes as seen from the player: (+1, +0)",
        "Goal as seen from the player: (+2, -1)",
    ]
    below = game.observe(state._replace(position=3), "player_0").splitlines()  # the texts are kept by cell
    assert below[2:] == ["Holes as seen from the player: (+1, +1)", "Goal as seen from the player: (+2, +0)"]


def test_text_that_is_no_observation_is_refused():
    with pytest.raises(ValueError, match="not a Frozen Lake observation"):
        read_observation("Apples: (1, 2)")


def test_a_lake_is_an_immutable_value():
    lake = Lake.from_desc(["SF", "FG"])
    assert lake == Lake(2, 2, "SFFG") != Lake(1, 4, "SFFG")
    assert hash(lake) == hash(Lake(2, 2, "SFFG"))
    assert pickle.loads(pickle.dumps(lake)) == lake
    assert copy.deepcopy(lake) is lake
    lake.memo["anything"] = 1
    assert lake == Lake(2, 2, "SFFG")
    for change in (lambda: setattr(lake, "tiles", "SGGG"), lambda: delattr(lake, "tiles")):
        with pytest.raises(AttributeError, match=r"cannot (assign to|delete) field"):
            change()


@pytest.mark.slow
def test_a_probability_too_small_for_the_size_is_said():
    with pytest.raises(ValueError, match="raise frozen_probability or lower size"):
        FrozenLake(size=12, frozen_probability=0.01).initial_state(np.random.default_rng(0))
