"""Snake: simultaneous moves, any number of snakes, food that may be worth anything.

In reading order: ``rules`` (settings, state, one round), ``text`` (what a player reads), ``game`` (both as a TSMG),
``observation_reader`` (back from text to state), ``solver`` (players that look ahead).
"""

from textgames.snake.game import Snake
from textgames.snake.rules import SnakeState

__all__ = ["Snake", "SnakeState"]
