"""The rules of Snake in words, its state, and the tables of moves; :mod:`textgames.snake.game` plays them.

Snakes of length 1 start on distinct random cells and all move at once. A snake dies when its new head

* leaves the board,
* meets another new head (all of them die), or
* enters a cell that any living snake, itself included, occupied **before** the move: tails count, and a snake that
  dies in this round still blocks its cells.

Apples, bananas and fires are all food: moving onto one pays its reward, the snake grows by one (its tail stays), and
the food reappears on a uniformly random empty cell after all moves. A snake that dies doesn't eat. Dead snakes leave
the board after the moves, before food reappears. Food that found no empty cell reappears after the first round that
leaves one.

The rules are those of SnakeBench (github.com/gkamradt/SnakeBench), with these differences: food may be worth anything,
there are any number of snakes, the game goes on while a controlled snake lives (SnakeBench stops when one of two is
dead), and the built-in opponent also avoids its own tail (entering it is deadly; SnakeBench's random player may).

Cells are numbered ``y * width + x``; (0, 0) is the bottom left corner, x grows right and y grows up.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from textgames.bases import neighbours

ACTIONS = ("up", "down", "left", "right")
OFF_BOARD = -1
"""Where a move leads that leaves the board; also the move of a snake that is dead."""

Cells = tuple[int, ...]


class SnakeState(NamedTuple):
    """What there is on the board. Immutable and hashable; equal boards are equal states."""

    # every snake's cells from head to tail, players first, then the built-in opponents; ``()`` is dead
    snakes: tuple[Cells, ...]
    apples: Cells  # apples, bananas, fires: their cells, ascending
    bananas: Cells
    fires: Cells


def _beside(width: int, height: int) -> tuple[Cells, ...]:
    return neighbours(height, width, ((1, 0), (-1, 0), (0, -1), (0, 1)))  # rows are counted upwards


@lru_cache(maxsize=64)
def move_table(width: int, height: int) -> Mapping[str, Cells]:
    """``table[action][cell]``: the cell that a head on ``cell`` moves to, or :data:`OFF_BOARD`."""
    return dict(zip(ACTIONS, zip(*_beside(width, height), strict=True), strict=True))


@lru_cache(maxsize=64)
def neighbour_table(width: int, height: int) -> tuple[Cells, ...]:
    """``table[cell]``: the cells next to ``cell``, in the order of :data:`ACTIONS`."""
    return tuple(tuple(to for to in four if to != OFF_BOARD) for four in _beside(width, height))
