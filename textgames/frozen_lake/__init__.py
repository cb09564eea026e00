"""Frozen Lake: rules in ``rules``, texts in ``text``, the exact solver in ``solver``, the game class in ``game``."""

from textgames.frozen_lake.game import FrozenLake
from textgames.frozen_lake.rules import FrozenLakeState, Lake

__all__ = ["FrozenLake", "FrozenLakeState", "Lake"]
