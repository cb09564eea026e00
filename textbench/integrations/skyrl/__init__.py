"""The games as environments of SkyRL-Gym (extra ``skyrl``).

``import textbench.integrations.skyrl`` registers ``textbench`` with ``skyrl_gym``; :func:`start_rows` makes the rows of
a data set.
"""

from skyrl_gym.envs.registration import register, registry

from textbench.integrations.skyrl.environment import ENV_CLASS, GameEnv, start_rows

if ENV_CLASS not in registry:
    register(id=ENV_CLASS, entry_point="textbench.integrations.skyrl.environment:GameEnv")

__all__ = ["ENV_CLASS", "GameEnv", "start_rows"]
