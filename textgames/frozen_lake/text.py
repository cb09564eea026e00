"""Frozen Lake's texts: the observation, the instructions, and reading a state back from an observation.

An observation has two halves, each of which can be switched off: the coordinates and the grid. ``(0, 0)`` is the bottom
left corner. Holes and goal may be told as seen from the player: ``(+1, -2)`` is one to the right and two down.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from textgames.frozen_lake.rules import FROZEN, GOAL, HOLE, START, FrozenLakeState, Lake
from textgames.texts.grids import board_line, board_size, coordinates_of, grid_rows, name_rows

PLAYER_MARK, HOLE_MARK, GOAL_MARK, ICE_MARK = "P", "O", "G", "_"
GRID_KEY = "Grid (P player, O hole, G goal, _ ice):"
SEEN = " as seen from the player"
_MARKS = str.maketrans({START: ICE_MARK, FROZEN: ICE_MARK, HOLE: HOLE_MARK, GOAL: GOAL_MARK})


class TextStyle(NamedTuple):
    """Which parts an observation has."""

    coordinates: bool = True
    grid: bool = True
    axes: bool = False
    relative: bool = False  # holes and goal as seen from the player


class _LakeText(NamedTuple):
    """What is the same in every observation of one map: an observation is these pieces around two that vary."""

    before: str  # ends where the player's coordinates go
    after: str  # from there to the end, with the grid without the player
    names: tuple[str, ...]  # coordinates by cell; empty strings where coordinates are off
    marks: tuple[int, ...]  # where each cell's mark stands in the grid; empty if the grid is off
    grid: int  # where the grid begins in `after`


def observation(state: FrozenLakeState, style: TextStyle) -> str:
    """Return the observation map ``phi``: what the player reads in ``state``."""
    lake, position = state
    key = (style, position) if style.relative else style
    text = lake.memo.get(key)
    if text is None:
        text = lake.memo[key] = _lake_text(lake, style, position)
    before, after, names, marks, grid = text
    if marks:
        mark = grid + marks[position]
        return f"{before}{names[position]}{after[:mark]}P{after[mark + 1 :]}"
    return f"{before}{names[position]}{after}"


def _lake_text(lake: Lake, style: TextStyle, position: int) -> _LakeText:
    names = coordinates_of(lake.nrow, lake.ncol)
    told, seen = (_as_seen_from(lake, position), SEEN) if style.relative else (names, "")
    before, after = board_line(lake.ncol, lake.nrow) + "\n", ""
    if style.coordinates:
        before += "Player: "
        after = f"\nHoles{seen}: {_listed(lake.tiles, HOLE, told)}\nGoal{seen}: {_listed(lake.tiles, GOAL, told)}"
    else:
        names = ("",) * len(names)
    if not style.grid:
        return _LakeText(before, after, names, (), 0)
    lead = f"{after}\n{GRID_KEY}\n" if style.coordinates else f"{GRID_KEY}\n"
    grid, marks = grid_rows(lake.tiles.translate(_MARKS), lake.ncol, style.axes)
    return _LakeText(before, lead + grid, names, marks, len(lead))


def _listed(tiles: str, kind: str, told: Sequence[str]) -> str:
    found, cell = [], tiles.find(kind)
    while cell >= 0:  # faster than a look at every tile
        found.append(told[cell])
        cell = tiles.find(kind, cell + 1)
    return ", ".join(found) or "none"


def _as_seen_from(lake: Lake, position: int) -> list[str]:
    """Return ``"(+1, -2)"`` of every cell: how far to the right and how far up it is from one of them."""
    row, column = divmod(position, lake.ncol)
    return [f"({cell % lake.ncol - column:+d}, {row - cell // lake.ncol:+d})" for cell in range(len(lake.tiles))]


def instructions(is_slippery: bool, success_rate: float) -> str:
    """Return the rules and the actions, for the prompt."""
    if is_slippery:
        aside = (1 - success_rate) / 2
        third = abs(success_rate - aside) < 1e-9  # 0.333 three times would leave a reader to guess at the rest
        chosen, other = ("1/3", "1/3") if third else (f"{success_rate:.3g}", f"{aside:.3g}")
        ice = (
            f"The ice is slippery: you move in the direction that you choose with probability {chosen}, "
            f"and in each of the two directions perpendicular to it with probability {other}."
        )
    else:
        ice = "The ice is not slippery: you always move in the direction that you choose."
    return (
        "You are playing Frozen Lake. Cross the lake from your position to the goal without falling into a hole.\n"
        "Each turn you move by one cell: left (X - 1), down (Y - 1), right (X + 1) or up (Y + 1). "
        "A move off the board leaves you where you are.\n"
        f"{ice}\n"
        "Reaching the goal gives a reward of 1 and ends the game. Falling into a hole gives 0 and ends the game.\n"
        "Actions: left, down, right, up."
    )


def read_observation(text: str) -> FrozenLakeState:
    """Return the inverse of :func:`observation`, from whichever half of it is there; a ValueError for another text.

    The start tile can't be seen in an observation: it is read as the player's own cell if that is ice (it plays no part
    in the rules after the start).
    """
    size = board_size(text)
    player = re.search(r"^Player: (\(.*\))$", text, re.MULTILINE)
    if size is None or (player is None and GRID_KEY not in text):
        raise ValueError(f"not a Frozen Lake observation: {text[:80]!r}")
    ncol, nrow = size
    if player is not None:
        names = name_rows(nrow, ncol)
        tiles = [FROZEN] * (nrow * ncol)
        position = names[player[1]]
        for kind, tile in (("Holes", HOLE), ("Goal", GOAL)):
            line = re.search(rf"^{kind}(?:{SEEN})?: (.*)$", text, re.MULTILINE)
            for name in re.findall(r"\(\d+, \d+\)", line[1]) if line else ():
                tiles[names[name]] = tile
            for right, up in re.findall(r"\(([+-]\d+), ([+-]\d+)\)", line[1]) if line else ():
                tiles[position + int(right) - int(up) * ncol] = tile
    else:
        rows = text.partition(GRID_KEY + "\n")[2].splitlines()[:nrow]
        marks = [mark for row in rows for mark in re.findall(r"[POG_]", row)]
        position = marks.index(PLAYER_MARK)
        tiles = [{HOLE_MARK: HOLE, GOAL_MARK: GOAL}.get(mark, FROZEN) for mark in marks]
    if tiles[position] == FROZEN:
        tiles[position] = START
    return FrozenLakeState(Lake(nrow, ncol, "".join(tiles)), position)
