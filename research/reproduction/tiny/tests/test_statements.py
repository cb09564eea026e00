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


# 5 x 4 board; own snake (1, 1) head, body (0, 1); enemy head (1, 3), body (2, 3); apples (3, 1) and (1, 2); fire (2, 0)
SNAKE_GAME = Snake(width=5, height=4, num_apples=2, num_fires=1)
SNAKE = SNAKE_GAME.observe(SnakeState(((6, 5), (16, 17)), (8, 11), (), (2,)), "player_0")


HOLD = {
    LAKE: """goal is right and down|goal is down and right|the goal is right and down.|right is hole|left is edge
        |up is ice|down is ice|right down is ice|down down is hole|right right is ice|left left is edge
        |up up is edge""",
    # an apple needn't be the nearest one where its cell is named
    SNAKE: """nearest apple is up|nearest fire is right and down|nearest enemy is up|left is body|up is apple
        |right is free|down is free|apple (1, 2) is up|apple (3, 1) is right|fire (2, 0) is down and right|head (1, 1)
        |up (1, 2) is apple|left left (-1, 1) is wall""",
}
DO_NOT = {
    LAKE: """goal is right|goal is left and down|right is ice|left is ice|down is goal|down down is ice|apple is left
        |head (0, 0)""",
    # the nearest apple is another one, nothing is in the cell, it is no wall, lakes have players, another cell is above
    SNAKE: """nearest apple is right|left is free|down is wall|nearest banana is up|apple (3, 1) is left
        |apple (3, 2) is right and up|fire (2, 0) is right|wall (2, 0) is right|head (1, 2)|player (1, 1)
        |up (1, 3) is apple|up (1, 2) is free""",
}


@pytest.mark.parametrize(("statements", "share"), [(HOLD, 1.0), (DO_NOT, 0.0)], ids=["true", "false"])
def test_statements_are_told_from_false_ones(statements, share):
    for board, told in statements.items():
        for statement in map(str.strip, told.split("|")):
            assert check(statement, board).share == share, statement


def test_a_reasoning_is_counted_part_by_part():
    response = "<think>goal is right and down; right is ice, I like ice</think><plan>up</plan><action>up</action>"
    assert check(response, LAKE) == (1, 1, 1)
    assert check("<think>apple (3, 1) is right; up is apple, down is wall</think>", SNAKE) == (2, 1, 0)
    assert check(response, LAKE).share == pytest.approx(1 / 3)
    assert math.isnan(check("<action>up</action>", LAKE).share)
    assert math.isnan(check("", LAKE).share)
    with pytest.raises(ValueError, match="grid=True"):
        check("right is ice", FrozenLake(grid=False).observe(FrozenLakeState(Lake.from_desc(["SF", "FG"]), 0), ""))


@pytest.mark.parametrize("foresight", [1, 5])
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


@pytest.mark.parametrize("scenario", ["frozen-lake", pytest.param("snake", marks=pytest.mark.slow)])
def test_what_is_said_of_a_board_is_true_and_the_plan_begins_with_the_action(scenario):
    longest = 0
    for one in demonstrate([scenario], ["planner"], 40, PromptMap("think"), explore=0.3):
        seen = check(one.response, one.prompt[-1].content)
        assert seen.true >= 1
        assert (seen.false, seen.unreadable) == (0, 0)
        assert re.search(r"; (left|right|up|down) \(-?\d+, -?\d+\) is ", one.response)  # a cell, then what is in it
        action = re.fullmatch(r"<think>.+</think><plan>.+</plan><action>(\w+)</action>", one.response)
        assert action is not None
        plan = one.response.partition("<plan>")[2].partition("</plan>")[0].split(", ")
        assert plan[0] == action[1]
        longest = max(longest, len(plan))
    assert longest > 2 or scenario != "frozen-lake"  # chance decides soon elsewhere
