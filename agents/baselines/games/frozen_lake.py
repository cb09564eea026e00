"""Frozen Lake's search players: the shortest way, and the exact optimum."""

import re
from functools import lru_cache
from typing import Any

from agents.baselines.scripted_player import Choice
from agents.baselines.search import YardstickPlayer
from agents.turn import TurnRequest
from textgames.frozen_lake.game import FrozenLake
from textgames.frozen_lake.rules import ACTIONS, FROZEN, HOLE, START, FrozenLakeState, Lake, goal_distances
from textgames.frozen_lake.text import GRID_KEY, read_observation
from textgames.solving.value_iteration import ValueIteration

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

        best = min(range(len(ACTIONS)), key=cost)
        if targets[best] not in distances:
            return Choice(ACTIONS[best], "There is no way to the goal from here.")
        return Choice(ACTIONS[best], f"The shortest way to the goal around the holes begins with {ACTIONS[best]}.")

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
        lake, position = read_observation(request.observation)
        return FrozenLakeState(_lake(lake.nrow, lake.ncol, lake.tiles.replace(START, FROZEN)), position)


_lake = lru_cache(maxsize=512)(Lake)
