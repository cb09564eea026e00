"""Cliff walking: from the start to the goal along a cliff, with the dynamics of Gymnasium's ``CliffWalking-v1``.

The gridworld of Example 6.6 in Sutton and Barto, "Reinforcement Learning: An Introduction" (2nd edition, 2018).

A state is the player's cell, numbered as in Gymnasium: row by row from the top left, ``row * 12 + column``.
"""

import re
from typing import ClassVar

from numpy.random import Generator

from textgames.bases import BoardGame, ListedStarts, Marks, OnePlayerGame, ReadsBack, neighbours
from textgames.texts.grids import board_line, board_rows, coordinates_of, grid_rows, name_rows

ACTIONS = ("up", "right", "down", "left")
NROW, NCOL = 4, 12
START, GOAL = (NROW - 1) * NCOL, NROW * NCOL - 1
CLIFF = range(START + 1, GOAL)
STEP_REWARD, FALL_REWARD = -1.0, -100.0

_WAYS = ((-1, 0), (0, 1), (1, 0), (0, -1))  # (rows down, columns right) of each action


def _arrive(cell: int, to: int) -> tuple[int, float, bool]:
    """Return where a step ends, what it pays, and whether the game is over; the edges of the board stop it."""
    entered = cell if to < 0 else to
    return (START, FALL_REWARD, False) if entered in CLIFF else (entered, STEP_REWARD, entered == GOAL)


_ARRIVALS = tuple(
    tuple(_arrive(cell, to) for to in beside) for cell, beside in enumerate(neighbours(NROW, NCOL, _WAYS))
)
PLAYER_MARK, CLIFF_MARK, GOAL_MARK, START_MARK, GROUND_MARK = "P", "C", "G", "S", "_"
_MARKS = "".join(
    {START: START_MARK, GOAL: GOAL_MARK}.get(cell, CLIFF_MARK if cell in CLIFF else GROUND_MARK)
    for cell in range(NROW * NCOL)
)
_NAMES = coordinates_of(NROW, NCOL)


def _observation(cell: int) -> str:
    grid, _ = grid_rows(_MARKS[:cell] + PLAYER_MARK + _MARKS[cell + 1 :], NCOL, axes=False)
    return (
        f"{board_line(NCOL, NROW)}\n"
        f"Player: {_NAMES[cell]}\n"
        f"Start: {_NAMES[START]}\n"
        f"Cliff: {_NAMES[CLIFF[0]]} to {_NAMES[CLIFF[-1]]}\n"
        f"Goal: {_NAMES[GOAL]}\n"
        f"Grid (P player, C cliff, S start, G goal, _ ground):\n{grid}"
    )


_OBSERVATIONS = tuple(_observation(cell) for cell in range(NROW * NCOL))
_PLAYER_LINE = re.compile(r"^Player: (\(\d+, \d+\))$", re.MULTILINE)


class CliffWalking(BoardGame[int], OnePlayerGame[int], ReadsBack[int], ListedStarts[int]):
    """Walk from the bottom left corner to the bottom right one; all the cells between them are a cliff.

    Every step pays -1. A step onto the cliff pays -100 instead, and leads back to the start.

    Args:
        is_slippery: whether a step has only 1/3 chance of the chosen direction, and 1/3 of each of the two
            perpendicular ones.
    """

    success_means = "reached the goal"
    actions = ACTIONS
    starts = (START,)
    worst_round = FALL_REWARD
    marks: ClassVar[Marks] = {
        PLAYER_MARK: ("player", (213, 94, 0)),
        CLIFF_MARK: ("cliff", (70, 50, 40)),
        GOAL_MARK: ("goal", (0, 158, 115)),
        START_MARK: ("start", (240, 228, 66)),
        GROUND_MARK: ("ground", (222, 214, 190)),
    }

    def __init__(self, *, is_slippery: bool = False) -> None:
        self.is_slippery = bool(is_slippery)

    def act(self, state: int, action: str, rng: Generator) -> tuple[int, float, bool]:
        """Take one step; on slippery ground it takes one uniform number of ``rng``."""
        way = ACTIONS.index(action)
        return _ARRIVALS[state][(way - 1 + int(rng.random() * 3)) % 4 if self.is_slippery else way]

    def chances(self, state: int, action: str) -> list[tuple[float, int, float, bool]]:
        way = ACTIONS.index(action)
        ways = [(way - 1) % 4, way, (way + 1) % 4] if self.is_slippery else [way]
        return [(1 / len(ways), *_ARRIVALS[state][each]) for each in ways]

    def is_playing(self, state: int, player: str) -> bool:
        return state != GOAL

    def succeeded(self, state: int, player: str) -> bool:
        return state == GOAL

    def observe(self, state: int, player: str) -> str:
        return _OBSERVATIONS[state]

    def instructions(self, player: str) -> str:
        slips = (
            "The ground is slippery: you step in the direction that you choose with probability 1/3, and in each of "
            "the two directions perpendicular to it with probability 1/3.\n"
            if self.is_slippery
            else ""
        )
        return (
            "You are walking along a cliff. Get from the start to the goal in as few steps as you can, without falling "
            "off the cliff.\n"
            "Each turn you step to a neighbouring cell: up (Y + 1), right (X + 1), down (Y - 1) or left (X - 1). "
            "A step off the board leaves you where you are.\n"
            f"{slips}"
            "Every step gives a reward of -1. A step onto the cliff gives -100 instead and puts you back at the start; "
            "the game goes on. Reaching the goal ends the game.\n"
            "Actions: up, right, down, left."
        )

    def shown(self, observation: str, player: str) -> int:
        return name_rows(NROW, NCOL)[_PLAYER_LINE.findall(observation)[0]]

    def told(self, state: int, action: str, after: int) -> str:
        chosen = ACTIONS.index(action)
        ways = [chosen, (chosen - 1) % 4, (chosen + 1) % 4] if self.is_slippery else [chosen]
        # several ways may lead to the same cell: it is said to have slipped only if it must have
        way = next(way for way in ways if _ARRIVALS[state][way][0] == after)
        told = [f"slipped {ACTIONS[way]} instead of {action}"] if way != chosen else []
        if _ARRIVALS[state][way][1] == FALL_REWARD:
            told.append("fell off the cliff, back to the start")
        elif after == state:
            told.append("bumped into the edge")
        elif after == GOAL:
            told.append("reached the goal")
        return "; ".join(told)

    def board(self, state: int) -> tuple[str, ...]:
        return board_rows(_MARKS[:state] + PLAYER_MARK + _MARKS[state + 1 :], NCOL)
