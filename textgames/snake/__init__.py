"""Snake: simultaneous moves, any number of snakes, food that may be worth anything.

In reading order: ``rules`` (settings, state, one round), ``text`` (from state to text and back), ``game`` (both as a
TSMG), ``solver`` (players that look ahead).
"""

from textgames.snake.game import Snake
from textgames.snake.rules import SnakeState
from textgames.snake.text import read_observation

__all__ = ["Snake", "SnakeState", "read_observation"]
