"""Players of games on a board: exact play or a search, and greedy ones that use distances."""

import re
from functools import lru_cache
from typing import Any

import numpy as np

from agents.baselines.scripted_player import Choice
from agents.baselines.search import SearchPlayer, YardstickPlayer
from agents.turn import TurnRequest
from textgames.frozen_lake.game import FrozenLake
from textgames.frozen_lake.rules import FROZEN, HOLE, START, FrozenLakeState, Lake, goal_distances
from textgames.frozen_lake.text import GRID_KEY
from textgames.frozen_lake.text import read_observation as read_lake
from textgames.planning.sliding_puzzle import GAP, GOAL, SIDE, SlidingPuzzle, SlidingYardstick, slide
from textgames.planning.sokoban import Sokoban, SokobanYardstick
from textgames.planning.sokoban_levels import TARGET, WALL, steps
from textgames.snake.game import Snake
from textgames.snake.reading import read_observation as read_snake
from textgames.snake.rules import SnakeState
from textgames.snake.solver import SnakeSearch, greedy_action
from textgames.solving.value_iteration import ValueIteration
from textgames.texts.grids import board_size

UNLIMITED_STEPS_PER_CELL = 8
"""Without a step limit, this many steps per cell are looked ahead: far beyond what a crossing takes."""


class FrozenLakePlayer(YardstickPlayer):
    """Frozen Lake's search: exact finite-horizon value iteration."""

    def __init__(self, game: FrozenLake) -> None:
        super().__init__(game, ValueIteration(game))

    @staticmethod
    def recognise(text: str) -> Any:
        return FrozenLake() if GRID_KEY in text or re.search(r"^Holes: ", text, re.MULTILINE) else None

    def greedy(self, request: TurnRequest) -> Choice:
        """Return the first step of a shortest way around the holes, as if the ice weren't slippery."""
        lake, position = self.state(request)
        distances = goal_distances(lake)
        targets, far = lake.moves[position], len(lake.tiles)

        def cost(action: int) -> tuple[int, bool]:
            return distances.get(targets[action], far), lake.tiles[targets[action]] == HOLE

        best = min(range(len(self._game.actions)), key=cost)
        if targets[best] not in distances:
            return Choice(self._game.actions[best], "There is no way to the goal from here.")
        return Choice(
            self._game.actions[best],
            f"The shortest way to the goal around the holes begins with {self._game.actions[best]}.",
        )

    def plan(self, request: TurnRequest) -> Choice:
        return self.plans(request)[0]

    def plans(self, request: TurnRequest) -> list[Choice]:
        """Return the actions of the largest value that dawdle least: all legal ones if the goal is out of reach."""
        state = self.state(request)
        unlimited = UNLIMITED_STEPS_PER_CELL * len(state.lake.tiles)
        steps = unlimited if request.steps_left is None else request.steps_left
        chance = self._yardstick.value(state, steps, request.player)
        return [
            Choice(action, f"With {action} and perfect play after it I reach the goal with probability {chance:.3f}.")
            for action in self._yardstick.best_actions(state, steps, request.player)
        ]

    def state(self, request: TurnRequest) -> FrozenLakeState:
        """Return the state, on the one :class:`Lake` of a map, which keeps what it computed."""
        lake, position = read_lake(request.observation)
        return FrozenLakeState(_lake(lake.nrow, lake.ncol, lake.tiles.replace(START, FROZEN)), position)


_lake = lru_cache(maxsize=512)(Lake)


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
            return Choice(self._game.actions[0], "No push that I can reach brings a box nearer to a target.")
        far, first = min(good)
        return Choice(self._game.actions[first], f"A push that brings a box nearer to a target is {far} steps away.")


def _manhattan(a: int, b: int, width: int) -> int:
    return abs(a % width - b % width) + abs(a // width - b // width)


_FOOD_LINE = re.compile(r"^(Apples|Bananas|Fires) \(([+-][\d.e+-]+) each\): (.*)$", re.MULTILINE)
_FOOD_KEY = re.compile(r"([ABF]) (apple|banana|fire) \(([+-][\d.e+-]+)\)")


class SnakePlayer(SearchPlayer):
    """Snake's search: estimates by playing plans ahead. An observation read back has its reader as the first snake."""

    def __init__(self, game: Snake) -> None:
        super().__init__(game)
        self._me = game.players[0]
        self._search = SnakeSearch(game)

    @staticmethod
    def recognise(text: str) -> Any:
        """Make Snake with the board, the food and the number of enemies that this observation shows."""
        size = board_size(text)
        if size is None or ("\nYou: " not in text and "1 your head" not in text):
            return None
        coordinates = "\nYou: head" in text
        grid = text[text.rfind(":\n") + 2 :] if "1 your head" in text else ""
        enemies = {int(number) for number in re.findall(r"^Enemy (\d)", text, re.MULTILINE)}
        enemies |= {int(digit) for digit in re.findall(r"(?<!\S)[2-9](?!\S)", grid)} if not coordinates else set()
        food: dict[str, Any] = {"num_apples": 0}
        if coordinates:
            shown = [(kind.lower(), worth, listed.count("(")) for kind, worth, listed in _FOOD_LINE.findall(text)]
        else:
            shown = [(f"{kind}s", worth, grid.count(letter)) for letter, kind, worth in _FOOD_KEY.findall(text)]
        for kind, worth, number in shown:
            food[f"num_{kind}"] = max(number, 1)
            food[f"{kind[:-1]}_reward"] = float(worth)
        return Snake(
            width=size[0],
            height=size[1],
            num_opponents=max(enemies, default=1) - 1,
            coordinates=coordinates,
            grid=bool(grid),
            axes="rows are Y" in text,
            **food,
        )

    def greedy(self, request: TurnRequest) -> Choice:
        action = greedy_action(read_snake(request.observation, self._game), self._me, self._game)
        return Choice(action, f"The nearest good food that I can reach is {action}, as the board stands now.")

    def values(self, request: TurnRequest) -> dict[str, float]:
        """Estimate the return of every action; the search's random numbers come from the request's seed."""
        state = read_snake(request.observation, self._game)
        rng = np.random.default_rng(request.seed)
        return self._search.action_values(state, self._me, request.steps_left, rng)

    def state(self, request: TurnRequest) -> SnakeState:
        if len(self._game.players) > 1:
            raise ValueError("an observation of Snake for several players doesn't tell whose snake is whose")
        return read_snake(request.observation, self._game)
