from .game import Snake
from .reading import read_observation
from .rules import SnakeState
from .solver import SnakeSearch, greedy_action
from .value import HORIZON, SnakeValue, distance_table, features, tour_times

__all__ = [
    "HORIZON",
    "Snake",
    "SnakeSearch",
    "SnakeState",
    "SnakeValue",
    "distance_table",
    "features",
    "greedy_action",
    "read_observation",
    "tour_times",
]
