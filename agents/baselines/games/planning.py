"""Players of the planning puzzles: the exact optimum from the yardstick, and a greedy one that goes by distances."""

from agents.baselines.scripted_player import Choice
from agents.baselines.search import YardstickPlayer
from agents.turn import TurnRequest
from textgames.planning.sliding_puzzle import GAP, GOAL, SIDE, SlidingPuzzle, SlidingYardstick, slide
from textgames.planning.sokoban import Sokoban, SokobanYardstick
from textgames.planning.sokoban_levels import ACTIONS, TARGET, WALL, SokobanState, steps


class SlidingPuzzlePlayer(YardstickPlayer):
    """The shortest way; greedy: the slide after which the tiles are nearest to their places."""

    def __init__(self, game: SlidingPuzzle) -> None:
        super().__init__(game, SlidingYardstick(game))

    def greedy(self, request: TurnRequest) -> Choice:
        """Return the slide with the least sum of Manhattan distances after it. It may go to and fro for ever."""
        state = self.state(request)
        away = {
            tile: sum(
                _manhattan(cell, GOAL.index(other), SIDE)
                for cell, other in enumerate(slide(state.tiles, tile))
                if other != GAP
            )
            for tile in self._game.legal_actions(state, request.player)
        }
        best = min(away, key=lambda tile: away[tile])
        return Choice(best, f"After sliding {best} the tiles are {away[best]} cells away from their places in all.")


class SokobanPlayer(YardstickPlayer):
    """The best way; greedy: the nearest push that brings a box nearer to a target, even if it is stuck after it."""

    def __init__(self, game: Sokoban) -> None:
        super().__init__(game, SokobanYardstick(game))

    def greedy(self, request: TurnRequest) -> Choice:
        state = self.state(request)
        walk = _walks(state)
        good = [(len(walk[stand]), (*walk[stand], action)[0]) for stand, action in _good_pushes(state) if stand in walk]
        if not good:
            return Choice(ACTIONS[0], "No push that I can reach brings a box nearer to a target.")
        steps, action = min(good)
        return Choice(ACTIONS[action], f"A push that brings a box nearer to a target is {steps} steps away.")


def _good_pushes(state: SokobanState) -> list[tuple[int, int]]:
    """Return ``(the cell to stand on, the action)`` of every push that brings a box nearer to its nearest target."""
    level, _, boxes, *_ = state
    targets = [cell for cell, tile in enumerate(level.tiles) if tile == TARGET]

    def away(cell: int) -> int:
        return min(_manhattan(cell, target, level.width) for target in targets)

    return [
        (box - step, action)
        for box in boxes
        for action, step in enumerate(steps(level))
        if level.tiles[box + step] != WALL and box + step not in boxes and away(box + step) < away(box)
    ]


def _walks(state: SokobanState) -> dict[int, tuple[int, ...]]:
    """Return ``{cell: actions}``: a shortest walk to every cell that can be reached without a push."""
    walks: dict[int, tuple[int, ...]] = {state.player: ()}
    for cell, walk in (queue := list(walks.items())):
        for action, step in enumerate(steps(state.level)):
            to = cell + step
            if to not in walks and to not in state.boxes and state.level.tiles[to] != WALL:
                walks[to] = (*walk, action)
                queue.append((to, walks[to]))
    return walks


def _manhattan(a: int, b: int, width: int) -> int:
    return abs(a % width - b % width) + abs(a // width - b // width)
