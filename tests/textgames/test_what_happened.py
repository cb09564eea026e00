"""What people are told of a round: why it ended as it did, in agreement with the rules."""

from collections import Counter

import numpy as np
import pytest

from tests.textgames.test_snake_rules import XY, make_game, play, state_of
from textgames.frozen_lake import FrozenLake, FrozenLakeState, Lake
from textgames.snake import Snake

LAKE = Lake.from_desc(["SFH", "FFF", "FFG"])


def told_on_the_lake(game: FrozenLake, start: int, action: str, arrived: int) -> str:
    before, after = FrozenLakeState(LAKE, start), FrozenLakeState(LAKE, arrived)
    return game.what_happened(before, {"player_0": action}, after, "player_0")


@pytest.mark.parametrize(
    ("start", "action", "arrived", "told"),
    [
        (4, "right", 5, ""),
        (4, "right", 7, "slipped down instead of right"),
        (7, "up", 8, "slipped right instead of up; reached the goal"),
        (3, "down", 3, "slipped left instead of down; bumped into the edge"),
        (5, "right", 2, "slipped up instead of right; fell into a hole"),
        (2, "left", 2, ""),  # it was in the hole already
        (0, "left", 0, "bumped into the edge"),  # as intended, or up: it can't be told from the cell
    ],
)
def test_slippery_ice(start, action, arrived, told):
    assert told_on_the_lake(FrozenLake(is_slippery=True), start, action, arrived) == told


def test_a_direction_that_is_never_taken_is_never_told():
    assert told_on_the_lake(FrozenLake(is_slippery=True, success_rate=0.0), 0, "left", 0) == (
        "slipped up instead of left; bumped into the edge"
    )
    row = Lake.from_desc(["SFG"])
    before, game = FrozenLakeState(row, 1), FrozenLake(is_slippery=True)
    assert game.what_happened(before, {"player_0": "left"}, before, "player_0") == (
        "slipped up or down instead of left; bumped into the edge"
    )


def told_in_snake(
    game: Snake, *snakes: list[XY], actions: str, player: int = 0, seed: int = 0, **food: tuple[XY, ...]
) -> str:
    state = state_of(game, *snakes, **food)
    after, _, _ = play(game, state, *actions.split(), seed=seed)
    joint_action = dict(zip(game.players, actions.split(), strict=True))
    return game.what_happened(state, joint_action, after, game.players[player])


RING = [(2, 2), (2, 1), (3, 1), (3, 2)]


def test_one_snake():
    game = make_game(num_apples=1, num_bananas=1, num_fires=1, apple_reward=2, banana_reward=-0.5)
    assert told_in_snake(game, [(2, 2)], actions="up") == ""
    assert told_in_snake(game, [(5, 4)], actions="up") == "hit the wall"
    assert told_in_snake(game, RING, actions="right") == "ran into its own body"
    assert told_in_snake(game, [(2, 2)], actions="up", apples=((2, 3),)) == "ate an apple (+2)"
    assert told_in_snake(game, [(2, 2)], actions="up", bananas=((2, 3),)) == "ate a banana (-0.5)"
    assert told_in_snake(game, [(2, 2)], actions="up", fires=((2, 3),)) == "ate a fire (-1)"
    dead = state_of(game, [])
    assert game.what_happened(dead, {}, dead, "player_0") == ""


def test_several_players_are_numbered_as_on_the_board():
    game = make_game(3)
    bodies = [(1, 2)], [(2, 3), (2, 2), (2, 1)], [(5, 4)]
    assert told_in_snake(game, *bodies, actions="right up down") == "ran into snake 2"
    assert told_in_snake(game, *bodies, actions="right up down", player=1) == ""
    heads = [(1, 2)], [(3, 2)], [(2, 3), (2, 4)]
    assert told_in_snake(game, *heads, actions="right left down") == "head to head with snake 2 and snake 3"
    assert told_in_snake(game, *heads, actions="right up down", player=2) == "head to head with snake 1"
    # two heads that swap their cells each run into the other
    assert told_in_snake(game, [(1, 2)], [(2, 2)], [], actions="right left up", player=1) == "ran into snake 1"


def test_the_opponent_whose_head_was_met_is_the_one_that_died_of_it():
    game = make_game(num_opponents=2)
    told = Counter(told_in_snake(game, [(1, 2)], [(3, 2)], [(2, 3)], actions="right", seed=seed) for seed in range(200))
    assert set(told) == {
        "",
        "head to head with snake 2",
        "head to head with snake 3",
        "head to head with snake 2 or snake 3",
    }


def test_every_death_and_every_meal_is_told_and_nothing_else():
    game = Snake(width=5, height=5, num_players=2, num_opponents=3, num_apples=3, num_fires=2)
    rng = np.random.default_rng(0)
    told: Counter[str] = Counter()
    for _ in range(300):
        state, over = game.initial_state(rng), False
        while not over:
            joint_action = {player: str(rng.choice(game.actions)) for player in game.players}
            after, _, over = game.transition(state, joint_action, rng)
            for i, player in enumerate(game.players):
                text = game.what_happened(state, joint_action, after, player)
                died = bool(state.snakes[i]) and not after.snakes[i]
                grew = len(after.snakes[i]) > len(state.snakes[i])
                assert died == text.startswith(("hit the wall", "ran into", "head to head with snake "))
                assert grew == text.startswith("ate a")
                assert bool(text) == (died or grew)
                told[text] += 1
            state = after
    assert {"hit the wall", "ran into its own body", "ran into snake 4", "ate an apple (+1)"} <= set(told)
