"""Statements about a board are told from false ones, and from what isn't one."""

import math
import re

import numpy as np
import pytest

from agents.msgrpo.warmup import demonstrate
from agents.prompt import PromptMap
from agents.tiny.data import demonstrations
from agents.tiny.demonstrator import StyleShares
from research.reproduction.tiny.statements import check
from textgames.frozen_lake import FrozenLake, FrozenLakeState, Lake
from textgames.scenarios import SCENARIOS
from textgames.snake import Snake
from textgames.snake.rules import SnakeState

DEMONSTRATED = [name for name, one in SCENARIOS.items() if one.env_id in ("TextFrozenLake-v0", "TextSnake-v0")]
LAKE = FrozenLake().observe(FrozenLakeState(Lake.from_desc(["SFFF", "FHFF", "FFHF", "HFFG"]), 4), "player_0")
# the player is at (0, 2): ice above and below, a hole to the right, the edge to the left; the goal is 3 right, 2 down


@pytest.mark.parametrize(
    ("statement", "true"),
    [
        ("goal is right and down", True),
        ("goal is down and right", True),
        ("the goal is right and down.", True),
        ("goal is right", False),
        ("goal is left and down", False),
        ("right is hole", True),
        ("right is ice", False),
        ("left is edge", True),
        ("left is ice", False),
        ("up is ice", True),
        ("down is ice", True),
        ("down is goal", False),
        ("right down is ice", True),
        ("down down is hole", True),
        ("down down is ice", False),
        ("right right is ice", True),
        ("left left is edge", True),
        ("up up is edge", True),
        ("apple is left", False),
        ("head (0, 0)", False),
    ],
)
def test_statements_about_a_lake(statement, true):
    assert check(statement, LAKE).share == float(true)


# 5 x 4 board; own snake (1, 1) head, body (0, 1); enemy head (1, 3), body (2, 3); apples (3, 1) and (1, 2); fire (2, 0)
SNAKE_GAME = Snake(width=5, height=4, num_apples=2, num_fires=1)
SNAKE = SNAKE_GAME.observe(SnakeState(((6, 5), (16, 17)), (8, 11), (), (2,)), "player_0")


@pytest.mark.parametrize(
    ("statement", "true"),
    [
        ("nearest apple is up", True),
        ("nearest apple is right", False),  # that one is two cells away
        ("nearest fire is right and down", True),
        ("nearest enemy is up", True),
        ("left is body", True),
        ("left is free", False),
        ("up is apple", True),
        ("right is free", True),
        ("down is free", True),
        ("down is wall", False),
        ("nearest banana is up", False),
        ("apple (1, 2) is up", True),
        ("apple (3, 1) is right", True),  # not the nearest one, but there it is
        ("apple (3, 1) is left", False),
        ("apple (3, 2) is right and up", False),  # nothing there
        ("fire (2, 0) is down and right", True),
        ("fire (2, 0) is right", False),
        ("wall (2, 0) is right", False),
        ("head (1, 1)", True),
        ("head (1, 2)", False),
        ("player (1, 1)", False),  # that is what a lake says
        ("up (1, 2) is apple", True),
        ("up (1, 3) is apple", False),  # not the cell above
        ("up (1, 2) is free", False),
        ("left left (-1, 1) is wall", True),
    ],
)
def test_statements_about_snakes(statement, true):
    assert check(statement, SNAKE).share == float(true)


def test_a_reasoning_is_counted_part_by_part():
    response = "<think>goal is right and down; right is ice, I like ice</think><plan>up</plan><action>up</action>"
    assert check(response, LAKE) == (1, 1, 1)
    assert check("<think>apple (3, 1) is right; up is apple, down is wall</think>", SNAKE) == (2, 1, 0)
    assert check(response, LAKE).share == pytest.approx(1 / 3)
    assert math.isnan(check("<action>up</action>", LAKE).share)
    assert math.isnan(check("", LAKE).share)
    with pytest.raises(ValueError, match="grid=True"):
        check("right is ice", FrozenLake(grid=False).observe(FrozenLakeState(Lake.from_desc(["SF", "FG"]), 0), ""))


@pytest.mark.parametrize("foresight", [1, 2, 3, 5])
@pytest.mark.parametrize("name", DEMONSTRATED)
def test_what_the_demonstrator_says_is_true_and_names_its_action(name, foresight):
    scenario = SCENARIOS[name]
    game = scenario.game()
    for example in demonstrations(scenario, 60, StyleShares(), np.random.default_rng(1), foresight=foresight):
        truth = check(example.response, example.observation)
        assert truth.true
        assert (truth.false, truth.unreadable) == (0, 0)
        action = game.interpret(example.response, None, "player_0")
        assert action in game.actions
        assert f"<plan>{action}</plan>" in example.response


@pytest.mark.parametrize(
    "scenario", ["frozen-lake", pytest.param("snake", marks=pytest.mark.slow), "frozen-lake-slippery"]
)
def test_what_is_said_of_a_board_is_true_and_the_plan_begins_with_the_action(scenario):
    longest = 0
    for one in demonstrate([scenario], ["planner"], 40, PromptMap("think"), explore=0.3):
        seen = check(one.response, one.prompt[-1].content)
        assert seen.true >= 1
        assert (seen.false, seen.unreadable) == (0, 0)
        assert re.search(
            r"; (left|right|up|down) \(-?\d+, -?\d+\) is ", one.response
        )  # the cell, and then what is in it
        action = re.fullmatch(r"<think>.+</think><plan>.+</plan><action>(\w+)</action>", one.response)
        assert action is not None
        plan = one.response.partition("<plan>")[2].partition("</plan>")[0].split(", ")
        assert plan[0] == action[1]
        longest = max(longest, len(plan))
    assert longest > 2 or scenario != "frozen-lake"  # chance decides soon elsewhere
