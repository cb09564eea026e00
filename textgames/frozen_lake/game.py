"""Frozen Lake as a text-mediated stochastic game: the rules of ``rules.py`` with the texts of ``text.py``."""

from collections.abc import Sequence
from typing import ClassVar

from numpy.random import Generator

from textgames.bases import BoardGame, Marks, OnePlayerGame
from textgames.frozen_lake import text
from textgames.frozen_lake.rules import (
    ACTIONS,
    GOAL,
    HOLE,
    START,
    FrozenLakeState,
    Lake,
    directions,
    draw_lake,
    shortest_path,
)
from textgames.settings import check_number, check_whole
from textgames.texts.grids import board_rows
from textgames.tsmg import Action, JointAction, Transition

MOST_SIZE = 100  # the side of the largest lake: a text of 10,000 tiles

LEAST_LIMIT = 8
"""The usual limit of the paper's 4x4 lake. On larger ones it is half as many moves as there are tiles: in 71,500 lakes
of 2x2 to 16x16, drawn with 0.5 to 0.9 ice, no shortest path took more.
"""

_ACTION_INDEX = {name: index for index, name in enumerate(ACTIONS)}


class FrozenLake(BoardGame[FrozenLakeState], OnePlayerGame[FrozenLakeState]):
    """Cross a frozen lake from start to goal without falling into a hole.

    The dynamics are those of Gymnasium's ``FrozenLake-v1``; a new map with a path is drawn at every reset, unless
    ``desc`` fixes one. Reward: 1 on entering the goal, else 0.

    Args:
        size: side of the square board, at least 2.
        frozen_probability: chance of each tile to be ice, in (0, 1].
        is_slippery: whether moves go astray.
        success_rate: slippery ice: probability of the intended direction, in [0, 1]; the two perpendicular ones
            share the rest.
        desc: rows of a fixed map (``S`` start, ``F`` frozen, ``H`` hole, ``G`` goal); overrides ``size`` and
            ``frozen_probability``. With several starts one is drawn at every reset.
        coordinates: observations list the coordinates of everything.
        grid: observations show the grid.
        axes: the grid has row and column numbers.
        relative: the coordinates of holes and goal are told as seen from the player.
    """

    success_means = "reached the goal"
    actions = ACTIONS
    return_range = (0.0, 1.0)
    marks: ClassVar[Marks] = {
        text.PLAYER_MARK: ("player", (213, 94, 0)),
        text.HOLE_MARK: ("hole", (20, 50, 90)),
        text.GOAL_MARK: ("goal", (0, 158, 115)),
        text.ICE_MARK: ("ice", (214, 234, 248)),
    }

    def __init__(
        self,
        *,
        size: int = 4,
        frozen_probability: float = 0.8,
        is_slippery: bool = False,
        success_rate: float = 1 / 3,
        desc: Sequence[str] | None = None,
        coordinates: bool = True,
        grid: bool = True,
        axes: bool = False,
        relative: bool = False,
    ) -> None:
        check_whole("size", size, 2, MOST_SIZE)
        check_number("frozen_probability", frozen_probability, 0, 1)
        if not frozen_probability:
            raise ValueError(f"frozen_probability must be above 0, got {frozen_probability!r}")
        check_number("success_rate", success_rate, 0, 1)
        if not coordinates and not grid:
            raise ValueError("coordinates and grid are both off: the player would see nothing; switch one on")
        if relative and not coordinates:
            raise ValueError("relative=True tells coordinates as seen from the player, so it needs coordinates=True")
        self.size = int(size)
        self.frozen_probability = float(frozen_probability)
        self.is_slippery = bool(is_slippery)
        self.success_rate = float(success_rate)
        self.lake = None if desc is None else Lake.from_desc(desc)
        self.width, self.height = (self.size, self.size) if self.lake is None else (self.lake.ncol, self.lake.nrow)
        self.usual_limit = max(LEAST_LIMIT, -(-self.width * self.height // 2))
        if self.lake is not None:
            self.shortest_win = max(shortest_path(self.lake, cell) for cell in self._starts(self.lake))
            if self.shortest_win < float("inf"):
                self.usual_limit = max(self.usual_limit, int(self.shortest_win) * 4 // 3)
        self.style = text.TextStyle(bool(coordinates), bool(grid), bool(axes), bool(relative))
        self._aside = (1.0 - self.success_rate) / 2.0

    def initial_state(self, rng: Generator) -> FrozenLakeState:
        lake = self.lake
        if lake is None:
            return FrozenLakeState(draw_lake(self.size, self.frozen_probability, rng), 0)
        starts = self._starts(lake)
        return FrozenLakeState(lake, starts[0] if len(starts) == 1 else starts[int(rng.random() * len(starts))])

    @staticmethod
    def _starts(lake: Lake) -> list[int]:
        return [cell for cell, tile in enumerate(lake.tiles) if tile == START]

    def transition(
        self, state: FrozenLakeState, joint_action: JointAction, rng: Generator
    ) -> Transition[FrozenLakeState]:
        action = joint_action.get("player_0")
        if action not in _ACTION_INDEX:
            self.chosen(state, joint_action)  # raises and says what is wrong
        after, reward, over = self.act(state, action, rng)  # type: ignore[arg-type]
        return after, {"player_0": reward}, over

    def act(self, state: FrozenLakeState, action: Action, rng: Generator) -> tuple[FrozenLakeState, float, bool]:
        """Move by one cell; slippery ice takes one uniform number of ``rng``."""
        lake, position = state
        way, tiles = _ACTION_INDEX[action], lake.tiles
        if tiles[position] in "HG":  # absorbing
            return state, 0.0, True
        if self.is_slippery:
            chance = rng.random()
            if chance >= self.success_rate:
                way = (way - 1) % 4 if chance < self.success_rate + self._aside else (way + 1) % 4
        position = lake.moves[position][way]
        tile = tiles[position]
        return FrozenLakeState(lake, position), 1.0 if tile == GOAL else 0.0, tile in "HG"

    def chances(self, state: FrozenLakeState, action: Action) -> list[tuple[float, FrozenLakeState, float, bool]]:
        (lake, position), tiles = state, state.lake.tiles
        ways = directions(_ACTION_INDEX[action], self.is_slippery, self.success_rate)
        cells = [(chance, lake.moves[position][way]) for chance, way in ways if chance]
        return [(p, FrozenLakeState(lake, to), float(tiles[to] == GOAL), tiles[to] in "HG") for p, to in cells]

    def is_playing(self, state: FrozenLakeState, player: str) -> bool:
        return state.lake.tiles[state.position] not in "HG"

    def succeeded(self, state: FrozenLakeState, player: str) -> bool:
        return state.lake.tiles[state.position] == GOAL

    def observe(self, state: FrozenLakeState, player: str) -> str:
        return text.observation(state, self.style)

    def instructions(self, player: str) -> str:
        return text.instructions(self.is_slippery, self.success_rate)

    def told(self, state: FrozenLakeState, action: Action, after: FrozenLakeState) -> str:
        targets = state.lake.moves[state.position]
        chosen, arrived = _ACTION_INDEX[action], after.position
        # in a corner two directions lead to the same cell; the player is then said to have slipped only if it must have
        ways = [
            direction
            for chance, direction in directions(chosen, self.is_slippery, self.success_rate)
            if chance and targets[direction] == arrived
        ]
        told = []
        if chosen not in ways:
            told.append(f"slipped {' or '.join(ACTIONS[way] for way in ways)} instead of {action}")
        if arrived == state.position:
            told.append("bumped into the edge")
        end = {HOLE: "fell into a hole", GOAL: "reached the goal"}.get(state.lake.tiles[arrived])
        return "; ".join([*told, *([end] if end else [])])

    def board(self, state: FrozenLakeState) -> tuple[str, ...]:
        marks = state.lake.tiles.translate(text._MARKS)
        return board_rows(marks[: state.position] + text.PLAYER_MARK + marks[state.position + 1 :], state.lake.ncol)
