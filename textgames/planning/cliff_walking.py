"""Cliff walking: from the start to the goal along a cliff, with the dynamics of Gymnasium's ``CliffWalking-v1``.

The gridworld of Example 6.6 in Sutton and Barto, "Reinforcement Learning: An Introduction" (2nd edition, 2018).

A state is the player's cell, numbered as in Gymnasium: row by row from the top left, ``row * 12 + column``.
"""

import re
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from textgames.texts.grids import board_line, coordinates_of, grid_rows, name_rows
from textgames.tsmg import TSMG, action_index

ACTIONS = ("up", "right", "down", "left")
NROW, NCOL = 4, 12
START, GOAL = (NROW - 1) * NCOL, NROW * NCOL - 1
CLIFF = range(START + 1, GOAL)
STEP_REWARD, FALL_REWARD = -1.0, -100.0

_STEPS = ((-1, 0), (0, 1), (1, 0), (0, -1))  # (rows down, columns right) of each action
_ACTION_INDEX = {name: index for index, name in enumerate(ACTIONS)}

Arrival = tuple[int, float, bool]
"""Where a step ends, what it pays, and whether the game is over."""


def arrive(cell: int, direction: int) -> Arrival:
    """What a step in a direction (an index of :data:`ACTIONS`) comes to; the edges of the board stop it."""
    down, right = _STEPS[direction]
    row = min(max(cell // NCOL + down, 0), NROW - 1)
    column = min(max(cell % NCOL + right, 0), NCOL - 1)
    entered = row * NCOL + column
    return (START, FALL_REWARD, False) if entered in CLIFF else (entered, STEP_REWARD, entered == GOAL)


_ARRIVALS = tuple(tuple(arrive(cell, direction) for direction in range(4)) for cell in range(NROW * NCOL))

# ------------------------------------------------------------------------------------------------ texts

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


class CliffWalking(TSMG[int]):
    """Walk from the bottom left corner to the bottom right one; all the cells between them are a cliff.

    Every step pays -1. A step onto the cliff pays -100 instead, and leads back to the start; the game goes on.

    Args:
        is_slippery: whether a step goes in the direction that was chosen with a chance of 1/3 only, and with 1/3 in
            each of the two directions perpendicular to it.
    """

    success_means = "reached the goal"
    actions = ACTIONS
    worst_round = FALL_REWARD
    palette: ClassVar[Mapping[str, tuple[int, int, int]]] = {
        PLAYER_MARK: (213, 94, 0),
        CLIFF_MARK: (70, 50, 40),
        GOAL_MARK: (0, 158, 115),
        START_MARK: (240, 228, 66),
        GROUND_MARK: (222, 214, 190),
    }
    legend: ClassVar[Mapping[str, str]] = {
        PLAYER_MARK: "player",
        CLIFF_MARK: "cliff",
        GOAL_MARK: "goal",
        START_MARK: "start",
        GROUND_MARK: "ground",
    }

    def __init__(self, *, is_slippery: bool = False) -> None:
        self.is_slippery = bool(is_slippery)

    def initial_state(self, rng: np.random.Generator) -> int:
        return START

    def initial_outcomes(self) -> list[tuple[float, int]]:
        return [(1.0, START)]

    def transition(
        self, state: int, joint_action: Mapping[str, str], rng: np.random.Generator
    ) -> tuple[int, dict[str, float], bool]:
        """Take one step; on slippery ground it takes one uniform number of ``rng``."""
        direction = action_index(joint_action, "player_0", _ACTION_INDEX)
        if self.is_slippery:
            direction = (direction - 1 + int(rng.random() * 3)) % 4
        cell, reward, terminated = _ARRIVALS[state][direction]
        return cell, {"player_0": reward}, terminated

    def outcomes(self, state: int, joint_action: Mapping[str, str]) -> list[tuple[float, int, dict[str, float], bool]]:
        direction = action_index(joint_action, "player_0", _ACTION_INDEX)
        ways = [(direction - 1) % 4, direction, (direction + 1) % 4] if self.is_slippery else [direction]
        return [
            (1 / len(ways), cell, {"player_0": reward}, terminated)
            for cell, reward, terminated in (_ARRIVALS[state][way] for way in ways)
        ]

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

    def read_observation(self, observation: str, player: str) -> int:
        found = _PLAYER_LINE.search(observation)
        cell = name_rows(NROW, NCOL).get(found[1]) if found else None
        if cell is None or observation != _OBSERVATIONS[cell]:
            raise ValueError(f"not an observation of cliff walking: {observation[:80]!r}")
        return cell

    def what_happened(self, state: int, joint_action: Mapping[str, str], next_state: int, player: str) -> str:
        if not self.is_playing(state, player):
            return ""
        direction = action_index(joint_action, "player_0", _ACTION_INDEX)
        ways = [direction, (direction - 1) % 4, (direction + 1) % 4] if self.is_slippery else [direction]
        # several ways may lead to the same cell: it is said to have slipped only where it must have
        way = next(way for way in ways if _ARRIVALS[state][way][0] == next_state)
        told = [f"slipped {ACTIONS[way]} instead of {ACTIONS[direction]}"] if way != direction else []
        if _ARRIVALS[state][way][1] == FALL_REWARD:
            told.append("fell off the cliff, back to the start")
        elif next_state == state:
            told.append("bumped into the edge")
        elif next_state == GOAL:
            told.append("reached the goal")
        return "; ".join(told)

    def board(self, state: int) -> tuple[str, ...]:
        marks = _MARKS[:state] + PLAYER_MARK + _MARKS[state + 1 :]
        return tuple(marks[start : start + NCOL] for start in range(0, len(marks), NCOL))
