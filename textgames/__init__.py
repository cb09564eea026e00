"""Text games for language models: text-mediated stochastic games (TSMG) for Gymnasium and PettingZoo.

Importing this package registers the ids::

    import gymnasium as gym, textgames
    env = gym.make("TextFrozenLake-v0")
    observation, info = env.reset(seed=7)
    observation, reward, terminated, truncated, info = env.step("<action>right</action>")

Start reading at :mod:`textgames.tsmg`.
"""

from textgames.action_text import Unreadable, UnreadableReason, parse_action
from textgames.registry import aec_env, game_of, parallel_env, register, registered_ids, settings_of
from textgames.scenarios import SCENARIOS, SUITES, TRAINING_SEEDS, Scenario
from textgames.tsmg import TSMG
from textgames.yardsticks import Yardstick, find_yardstick, register_yardstick

__all__ = [
    "SCENARIOS",
    "SUITES",
    "TRAINING_SEEDS",
    "TSMG",
    "Scenario",
    "Unreadable",
    "UnreadableReason",
    "Yardstick",
    "aec_env",
    "find_yardstick",
    "game_of",
    "parallel_env",
    "parse_action",
    "register",
    "register_yardstick",
    "registered_ids",
    "settings_of",
]
