"""Small Sokoban: push every box onto a target; a box in a corner never comes out again.

Rules and the exact table of a level are in :mod:`textgames.planning.sokoban_levels`; here are the texts and the game.
"""

from functools import lru_cache
from typing import ClassVar

from numpy.random import Generator

from textgames.bases import BoardGame, Marks, OnePlayerGame, ReadsBack
from textgames.planning.sokoban_levels import (
    ACTIONS,
    BOX_REWARD,
    FLOOR,
    SOLVED_REWARD,
    STEP_REWARD,
    TARGET,
    WALL,
    Level,
    SokobanState,
    draw_start,
    level_table,
    move,
    moves_to_solve,
    on_targets,
)
from textgames.rounds import at_most
from textgames.settings import check_whole
from textgames.texts.grids import board_line, board_rows, board_size, coordinates_of, grid_rows
from textgames.yardsticks import Yardstick

PLAYER, PLAYER_ON_TARGET, BOX, BOX_ON_TARGET = "P", "p", "B", "X"
GRID_KEY = "Grid (P player, p player on a target, B box, X box on a target, T target, # wall, _ floor):"
MOVES_LEFT = "Moves left: "

MOST_POSITIONS = 70_000


class Sokoban(BoardGame[SokobanState], OnePlayerGame[SokobanState], ReadsBack[SokobanState]):
    """Push the boxes onto the targets.

    Args:
        size: side of the square board with the walls around it, 5 to 8.
        boxes: how many boxes, 1 to 3, and as many targets.
        most_walls: inner walls are drawn, 0 to this many with equal chances.
        shortest: the fewest moves that the shortest solution of a start may have.
        longest: the most.
        max_moves: the game ends after this many moves, at least ``longest``.
    """

    success_means = "pushed every box onto a target"
    actions = ACTIONS
    marks: ClassVar[Marks] = {
        WALL: ("wall", (70, 70, 70)),
        FLOOR: ("floor", (235, 230, 220)),
        TARGET: ("target", (240, 190, 190)),
        PLAYER: ("player", (0, 114, 178)),
        PLAYER_ON_TARGET: ("player on a target", (110, 150, 200)),
        BOX: ("box", (160, 100, 40)),
        BOX_ON_TARGET: ("box on a target", (0, 158, 115)),
    }

    def __init__(
        self,
        *,
        size: int = 6,
        boxes: int = 1,
        most_walls: int = 3,
        shortest: int = 4,
        longest: int = 10,
        max_moves: int = 15,
    ) -> None:
        whole = {
            "size": (size, 5, 8),
            "boxes": (boxes, 1, 3),
            "most_walls": (most_walls, 0, 6),
            "shortest": (shortest, 1, 200),
            "longest": (longest, shortest, 200),
            "max_moves": (max_moves, longest, 1000),
        }
        for name, (value, low, high) in whole.items():
            check_whole(name, value, low, high)
        if (size - 2) ** (2 * (1 + boxes)) > MOST_POSITIONS:
            raise ValueError(
                f"size={size} with boxes={boxes} has too many positions to be searched; accepted: a smaller size or "
                "fewer boxes, such as size 6 with 3 or size 8 with 2"
            )
        self.size, self.boxes, self.most_walls = int(size), int(boxes), int(most_walls)
        self.shortest, self.longest = int(shortest), int(longest)
        self.max_moves = self.longest_episode = int(max_moves)
        # boxes start off their targets, so what they pay never falls below 0
        self.return_range = (
            STEP_REWARD * self.max_moves,
            SOLVED_REWARD + BOX_REWARD * self.boxes + STEP_REWARD * self.shortest,
        )

    def initial_state(self, rng: Generator) -> SokobanState:
        return draw_start(self.size, self.boxes, self.most_walls, self.shortest, self.longest, rng)

    def act(self, state: SokobanState, action: str, rng: Generator) -> tuple[SokobanState, float, bool]:
        level, player, boxes, moves, shortest = state
        player, moved = move(level, player, boxes, ACTIONS.index(action))
        after, reward = SokobanState(level, player, moved, moves + 1, shortest), STEP_REWARD
        if moved is not boxes:
            on = on_targets(level, moved)
            reward += BOX_REWARD * (on - on_targets(level, boxes))
            if on == len(moved):
                return after, reward + SOLVED_REWARD, True
        return after, reward, after.moves == self.max_moves

    def forfeit(self, state: SokobanState, player: str, rounds_left: float) -> dict[str, float]:
        """Return what is paid if the moves that are left only push boxes off their targets again."""
        moves = min(rounds_left, self.max_moves - state.moves)
        return {player: STEP_REWARD * moves - BOX_REWARD * on_targets(state.level, state.boxes)}

    def is_playing(self, state: SokobanState, player: str) -> bool:
        return state.moves < self.max_moves and not self.succeeded(state, player)

    def succeeded(self, state: SokobanState, player: str) -> bool:
        return on_targets(state.level, state.boxes) == len(state.boxes)

    def metrics(self, state: SokobanState, player: str) -> dict[str, float]:
        """Return exact figures, from the search of the whole level.

        ``dead``: 1 if a push has made a solution impossible; else ``moves_over_optimum``: by how much the moves so far,
        with the shortest way to a solution, exceed the shortest solution.
        """
        left = moves_to_solve(state)
        if left is None:
            return {"dead": 1.0}
        return {"dead": 0.0, "moves_over_optimum": float(state.moves + left - state.shortest)}

    def observe(self, state: SokobanState, player: str) -> str:
        level, cell, boxes, moves, _ = state
        names, (grid, _) = coordinates_of(self.size, self.size), grid_rows(_marks(level, cell, boxes), self.size, False)
        return (
            f"{board_line(self.size, self.size)}\n{MOVES_LEFT}{self.max_moves - moves}\nPlayer: {names[cell]}\n"
            f"Boxes: {', '.join([names[box] for box in boxes])}\nTargets: {_targets(level)}\n{GRID_KEY}\n{grid}"
        )

    def shown(self, observation: str, player: str) -> SokobanState:
        """Return the state that an observation shows.

        How long the shortest solution was at the start, of interest to metrics alone, can't be seen any more: it is
        read as if all moves so far had been the best ones (or 0 if there is no solution).
        """
        head, _, grid = observation.partition(f"\n{GRID_KEY}\n")
        size, left = board_size(head), head.partition(MOVES_LEFT)[2].partition("\n")[0]
        marks = grid.replace(" ", "").replace("\n", "")
        tiles = marks.translate(str.maketrans("PpBX", "_T_T"))
        boxes = tuple([cell for cell, mark in enumerate(marks) if mark in "BX"])
        (cell,) = [cell for cell, mark in enumerate(marks) if mark in "Pp"]
        if size is None or len(marks) != size[0] * size[1] or set(tiles) - {WALL, FLOOR, TARGET}:
            raise ValueError(f"not a Sokoban grid: {grid[:80]!r}")
        if len(boxes) != tiles.count(TARGET):
            raise ValueError(f"{len(boxes)} boxes have {tiles.count(TARGET)} targets")
        state = SokobanState(Level(size[0], tiles), cell, boxes, self.max_moves - int(left), 0)
        if self.observe(state, player) != observation:  # before all of the level is searched
            raise ValueError("the observation doesn't agree with its own grid")
        to_go = moves_to_solve(state)
        return state if to_go is None else state._replace(shortest=state.moves + to_go)

    def instructions(self, player: str) -> str:
        boxes = "the box onto the target" if self.boxes == 1 else "every box onto a target; any box fits any target"
        return (
            f"You are playing Sokoban. Push {boxes}.\n"
            "Each turn you move by one cell: up (Y + 1), down (Y - 1), left (X - 1) or right (X + 1). "
            "If a box is in the cell that you move into, you push it one cell farther in the same direction. "
            "A box can't be pushed into a wall or another box, and never be pulled. A move that is blocked leaves "
            "everything as it is.\n"
            f"You have {self.max_moves} moves. Every move pays {STEP_REWARD:g}, a box pushed onto a target "
            f"{BOX_REWARD:g}, a box pushed off a target {-BOX_REWARD:g}. When all boxes are on targets, that pays "
            f"{SOLVED_REWARD:g} more and ends the game.\n"
            f"Actions: {', '.join(ACTIONS)}."
        )

    def told(self, state: SokobanState, action: str, after: SokobanState) -> str:
        if after.player == state.player:
            return "bumped into a wall or a box that can't be pushed"
        if after.boxes == state.boxes:
            return ""
        change = on_targets(state.level, after.boxes) - on_targets(state.level, state.boxes)
        told = {1: "pushed a box onto a target", -1: "pushed a box off a target"}.get(change, "pushed a box")
        if self.succeeded(after, "player_0"):
            return f"{told}; solved"
        dead = moves_to_solve(after) is None and moves_to_solve(state) is not None
        return f"{told}; from here there is no solution any more" if dead else told

    def board(self, state: SokobanState) -> tuple[str, ...]:
        return board_rows(_marks(state.level, state.player, state.boxes), self.size)


def _marks(level: Level, player: int, boxes: tuple[int, ...]) -> str:
    marks = list(level.tiles)
    for box in boxes:
        marks[box] = BOX_ON_TARGET if marks[box] == TARGET else BOX
    marks[player] = PLAYER_ON_TARGET if marks[player] == TARGET else PLAYER
    return "".join(marks)


@lru_cache(maxsize=1024)
def _targets(level: Level) -> str:
    names = coordinates_of(len(level.tiles) // level.width, level.width)
    return ", ".join([names[cell] for cell, tile in enumerate(level.tiles) if tile == TARGET])


class SokobanYardstick(Yardstick):
    """Exact values by backward induction over every position of the level."""

    method = "backward induction"

    def values(self, state: SokobanState, steps_left: int | None, player: str) -> dict[str, float]:
        table = level_table(state.level, len(state.boxes))
        position = table.position(state.player, state.boxes)
        left = at_most(self._game.max_moves - state.moves, steps_left)
        after = table.optimal_values(left - 1)[table.next[:, position]]
        return dict(zip(ACTIONS, (table.rewards[:, position] + after).tolist(), strict=True))
