"""Text games for language models: text-mediated stochastic games (TSMG) for Gymnasium and PettingZoo.

Importing this package registers the ids::

    import gymnasium as gym, textgames
    env = gym.make("TextFrozenLake-v0")
    observation, info = env.reset(seed=7)
    observation, reward, terminated, truncated, info = env.step("<action>right</action>")

Start reading at :mod:`textgames.tsmg`. All other names are imported when they are first used.
"""

import textgames.scenarios  # registers the ids  # noqa: F401
from textgames.importing import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
