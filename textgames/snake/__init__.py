"""Snake: simultaneous moves, any number of snakes, food that may be worth anything.

In reading order: ``rules`` (settings, state, one round), ``text`` (from state to text), ``game`` (both as a TSMG),
``reading`` (from text back to state), ``solver`` (players that look ahead).
"""

from textgames.snake.game import Snake
from textgames.snake.reading import read_observation
from textgames.snake.rules import SnakeState

__all__ = ["Snake", "SnakeState", "read_observation"]
