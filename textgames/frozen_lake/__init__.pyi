from .game import FrozenLake
from .rules import FROZEN, GOAL, HOLE, START, FrozenLakeState, Lake, move_table, shortest_path

__all__ = [
    "FROZEN",
    "GOAL",
    "HOLE",
    "START",
    "FrozenLake",
    "FrozenLakeState",
    "Lake",
    "move_table",
    "shortest_path",
]
