"""Text games for language models: text-mediated stochastic games (TSMG) for Gymnasium and PettingZoo.

Importing this package registers the ids::

    import gymnasium as gym, textgames
    env = gym.make("TextFrozenLake-v0")
    observation, info = env.reset(seed=7)
    observation, reward, terminated, truncated, info = env.step("<action>right</action>")

Start reading at :mod:`textgames.tsmg`.
"""

from textgames.action_text import Unreadable, UnreadableReason, parse_action
from textgames.registry import game_of, parallel_env, register, registered_ids, settings_of
from textgames.scenarios import SCENARIOS, TRAINING_SEEDS, Scenario
from textgames.tsmg import TSMG

__all__ = [
    "SCENARIOS",
    "TRAINING_SEEDS",
    "TSMG",
    "Scenario",
    "Unreadable",
    "UnreadableReason",
    "game_of",
    "parallel_env",
    "parse_action",
    "register",
    "registered_ids",
    "settings_of",
]

register("TextFrozenLake-v0", "textgames.frozen_lake:FrozenLake", max_steps=8)
register("TextSnake-v0", "textgames.snake:Snake", max_steps=8)
