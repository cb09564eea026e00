"""Snake's search players: towards the nearest food, and the reference search."""

import re
from typing import Any

import numpy as np

from agents.baselines.scripted_player import Choice
from agents.baselines.search import SearchPlayer
from agents.turn import TurnRequest
from textgames.snake.game import Snake
from textgames.snake.reading import read_observation
from textgames.snake.rules import SnakeState
from textgames.snake.solver import SnakeSearch, greedy_action
from textgames.texts.grids import board_size

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
        action = greedy_action(read_observation(request.observation, self._game), self._me, self._game)
        return Choice(action, f"The nearest good food that I can reach is {action}, as the board stands now.")

    def values(self, request: TurnRequest) -> dict[str, float]:
        """Estimate the return of every action; the search's random numbers come from the request's seed."""
        state = read_observation(request.observation, self._game)
        rng = np.random.default_rng(request.seed)
        return self._search.action_values(state, self._me, request.steps_left, rng)

    def state(self, request: TurnRequest) -> SnakeState:
        if len(self._game.players) > 1:
            raise ValueError("an observation of Snake for several players doesn't tell whose snake is whose")
        return read_observation(request.observation, self._game)
