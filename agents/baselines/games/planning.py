"""Players of the planning puzzles: the exact optimum from the yardstick, and a greedy one that uses distances."""

from agents.baselines.scripted_player import Choice
from agents.baselines.search import YardstickPlayer
from agents.turn import TurnRequest
from textgames.planning.sliding_puzzle import GAP, GOAL, SIDE, SlidingPuzzle, SlidingYardstick, slide
from textgames.planning.sokoban import Sokoban, SokobanYardstick
from textgames.planning.sokoban_levels import ACTIONS, TARGET, WALL, steps


class SlidingPuzzlePlayer(YardstickPlayer):
    """The shortest way; greedy: the slide after which the tiles are nearest to their places."""

    def __init__(self, game: SlidingPuzzle) -> None:
        super().__init__(game, SlidingYardstick(game))

    def greedy(self, request: TurnRequest) -> Choice:
        """Return the slide with the least sum of Manhattan distances after it. It may move to and fro for ever."""
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
        level, boxes, moves = state.level, state.boxes, list(enumerate(steps(state.level)))
        walks: dict[int, tuple[int, ...]] = {state.player: ()}  # the shortest one to each cell, without a push
        for cell, walk in (queue := list(walks.items())):
            for action, step in moves:
                to = cell + step
                if to not in walks and to not in boxes and level.tiles[to] != WALL:
                    walks[to] = (*walk, action)
                    queue.append((to, walks[to]))
        targets = [cell for cell, tile in enumerate(level.tiles) if tile == TARGET]

        def away(cell: int) -> int:
            return min(_manhattan(cell, target, level.width) for target in targets)

        pushes = [(box, action, step) for box in boxes for action, step in moves if box - step in walks]
        good = [
            (len(walks[box - step]), (*walks[box - step], action)[0])
            for box, action, step in pushes
            if level.tiles[box + step] != WALL and box + step not in boxes and away(box + step) < away(box)
        ]
        if not good:
            return Choice(ACTIONS[0], "No push that I can reach brings a box nearer to a target.")
        far, first = min(good)
        return Choice(ACTIONS[first], f"A push that brings a box nearer to a target is {far} steps away.")


def _manhattan(a: int, b: int, width: int) -> int:
    return abs(a % width - b % width) + abs(a // width - b // width)
