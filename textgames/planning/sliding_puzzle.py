"""The 3x3 sliding puzzle: eight tiles and a gap, to be put in order; every position's distance is known exactly.

A position is a string of nine digits, row by row, if ``0`` is the gap. The goal is ``123456780``. From it 181,440
positions can be reached, the farthest in 31 moves (Reinefeld, "Complete solution of the Eight-Puzzle and the benefit of
node ordering in IDA*", IJCAI 1993).
"""

import re
from functools import lru_cache
from math import inf
from typing import ClassVar, NamedTuple

from numpy.random import Generator

from textgames.bases import BoardGame, Marks, OnePlayerGame, ReadsBack, neighbours
from textgames.rounds import at_most
from textgames.settings import check_number, check_whole
from textgames.texts.grids import board_rows
from textgames.yardsticks import Yardstick

SIDE = 3
CELLS = SIDE * SIDE
GOAL = "123456780"
GAP = "0"
LONGEST = 31  # the distance of the farthest positions

BESIDE = tuple(
    tuple(sorted(cell for cell in beside if cell >= 0))
    for beside in neighbours(SIDE, SIDE, ((-1, 0), (0, -1), (0, 1), (1, 0)))
)  # the cells beside each cell


class SlidingState(NamedTuple):
    """The tiles, and how many moves were made."""

    tiles: str
    moves: int = 0


def slide(tiles: str, tile: str) -> str:
    """Return the position after a tile beside the gap was slid into it."""
    return tiles.replace(tile, "_").replace(GAP, tile).replace("_", GAP)


@lru_cache(maxsize=10_000)
def movable(tiles: str) -> tuple[str, ...]:
    """Return the tiles beside the gap, in the order of their numbers."""
    return tuple(sorted(tiles[cell] for cell in BESIDE[tiles.index(GAP)]))


@lru_cache(maxsize=1)
def layers() -> tuple[tuple[str, ...], ...]:
    """Return the positions at every distance from the goal, by breadth-first search; found once, in half a second."""
    found, layer, seen = [], [GOAL], {GOAL}
    while layer:
        found.append(tuple(layer))
        layer = sorted({slide(tiles, tiles[cell]) for tiles in layer for cell in BESIDE[tiles.index(GAP)]} - seen)
        seen.update(layer)
    return tuple(found)


@lru_cache(maxsize=1)
def _distances() -> dict[str, int]:
    return {tiles: moves for moves, layer in enumerate(layers()) for tiles in layer}


def distance(tiles: str) -> int:
    """Return the fewest moves to the goal, or raise ValueError if it can't be reached."""
    if tiles not in _distances():
        raise ValueError(f"the goal can't be reached from {tiles!r}")
    return _distances()[tiles]


class SlidingPuzzle(BoardGame[SlidingState], OnePlayerGame[SlidingState], ReadsBack[SlidingState]):
    """Slide tiles into the gap until they are in order. An action is the number of the tile that slides.

    Args:
        min_distance: the fewest moves that a start needs, 1 to 31.
        max_distance: the most moves that a start needs. The distance is drawn first, each with equal chances, then one
            of the positions at this distance.
        max_moves: the game ends after this many moves, at least ``max_distance``.
        step_reward: what every move pays, at most 0.
        goal_reward: what putting the tiles in order pays, at least 0.
    """

    success_means = "put all tiles in their places"
    actions = tuple(GOAL.replace(GAP, ""))
    marks: ClassVar[Marks] = {
        "_": ("gap", (245, 245, 245)),
        **{f"{n}": (f"tile {n}", (255 - 22 * n, 190 - 8 * n, 60 + 20 * n)) for n in range(1, CELLS)},
    }

    def __init__(
        self,
        *,
        min_distance: int = 4,
        max_distance: int = 8,
        max_moves: int = 12,
        step_reward: float = -0.02,
        goal_reward: float = 1.0,
    ) -> None:
        check_whole("max_moves", max_moves, 1)
        check_whole("min_distance", min_distance, 1, LONGEST)
        check_whole("max_distance", max_distance, 1, LONGEST)
        if min_distance > max_distance:
            raise ValueError(f"min_distance must not be above max_distance, got {min_distance} and {max_distance}")
        if max_moves < max_distance:
            raise ValueError(f"max_moves must be at least max_distance, {max_distance}, got {max_moves}")
        check_number("step_reward", step_reward, -inf, 0)
        check_number("goal_reward", goal_reward, 0, inf)
        self.min_distance, self.max_distance = int(min_distance), int(max_distance)
        self.max_moves = self.longest_episode = int(max_moves)
        self.step_reward, self.goal_reward = float(step_reward), float(goal_reward)
        self.worst_round = self.step_reward
        self.return_range = step_reward * self.max_moves, goal_reward + step_reward * self.min_distance

    def initial_state(self, rng: Generator) -> SlidingState:
        layer = layers()[int(rng.integers(self.min_distance, self.max_distance + 1))]
        return SlidingState(layer[int(rng.integers(len(layer)))])

    def initial_outcomes(self) -> list[tuple[float, SlidingState]]:
        drawn = layers()[self.min_distance : self.max_distance + 1]
        return [(1.0 / len(drawn) / len(layer), SlidingState(tiles)) for layer in drawn for tiles in layer]

    def legal_actions(self, state: SlidingState, player: str) -> tuple[str, ...]:
        return movable(state.tiles)

    def act(self, state: SlidingState, action: str, rng: Generator) -> tuple[SlidingState, float, bool]:
        after = SlidingState(slide(state.tiles, action), state.moves + 1)
        if after.tiles == GOAL:
            return after, self.step_reward + self.goal_reward, True
        return after, self.step_reward, after.moves == self.max_moves

    def forfeit(self, state: SlidingState, player: str, rounds_left: float) -> dict[str, float]:
        return super().forfeit(state, player, min(rounds_left, self.max_moves - state.moves))

    def is_playing(self, state: SlidingState, player: str) -> bool:
        return state.tiles != GOAL and state.moves < self.max_moves

    def succeeded(self, state: SlidingState, player: str) -> bool:
        return state.tiles == GOAL

    def metrics(self, state: SlidingState, player: str) -> dict[str, float]:
        return {"distance_left": float(distance(state.tiles))}

    def observe(self, state: SlidingState, player: str) -> str:
        a, b, c, d, e, f, g, h, i = tuple(state.tiles.replace(GAP, "_"))
        return (
            f"Moves left: {self.max_moves - state.moves}\n"
            f"Grid (_ is the gap):\n{a} {b} {c}\n{d} {e} {f}\n{g} {h} {i}\n"
            f"Tiles beside the gap: {', '.join(movable(state.tiles))}"
        )

    def shown(self, observation: str, player: str) -> SlidingState:
        left, a, b, c = _READ.findall(observation)[0]
        tiles = (a + b + c).replace(" ", "").replace("_", GAP)
        return SlidingState(tiles, self.max_moves - int(left))

    def instructions(self, player: str) -> str:
        return (
            "You are solving a sliding puzzle: eight tiles with the numbers 1 to 8 and one gap on a board of 3 by 3 "
            "cells. Bring them into this order:\n1 2 3\n4 5 6\n7 8 _\n"
            "Each turn you slide one tile that is beside the gap (left, right, above or below it, not diagonally) into "
            "the gap; the gap is then where the tile was.\n"
            f"You have {self.max_moves} moves. The right order pays {self.goal_reward:g} and ends the game. "
            f"Every move pays {self.step_reward:g}.\n"
            f"Actions: the number of the tile that slides, one of {', '.join(self.actions)}; only tiles beside the gap "
            "can slide."
        )

    def told(self, state: SlidingState, action: str, after: SlidingState) -> str:
        if after.tiles == GOAL:
            return "the tiles are in order"
        before, left = distance(state.tiles), distance(after.tiles)
        where = "nearer to" if left < before else "farther from"
        return f"{where} the goal: {left} move{'s' * (left > 1)} away"

    def board(self, state: SlidingState) -> tuple[str, ...]:
        return board_rows(state.tiles.replace(GAP, "_"), SIDE)


_READ = re.compile(r"^Moves left: (\d+)\nGrid \(_ is the gap\):\n(.*)\n(.*)\n(.*)$", re.MULTILINE)


class SlidingYardstick(Yardstick):
    """Exact values from the distances.

    Moves never pay more than 0 and the goal never less, so with ``h`` moves left the optimum is the shortest way if
    that takes at most ``h`` moves, and any ``h`` moves otherwise.
    """

    method = "table of distances"
    _game: SlidingPuzzle

    def values(self, state: SlidingState, steps_left: int | None, player: str) -> dict[str, float]:
        left = at_most(self._game.max_moves - state.moves, steps_left)
        return {
            tile: self._game.step_reward + self._worth(slide(state.tiles, tile), left - 1)
            for tile in movable(state.tiles)
        }

    def _worth(self, tiles: str, moves_left: int) -> float:
        moves = distance(tiles)
        if moves > moves_left:
            return self._game.step_reward * moves_left
        return self._game.goal_reward + self._game.step_reward * moves
