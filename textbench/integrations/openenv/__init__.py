"""The games as OpenEnv environments: ``textbench serve SCENARIO``, and the client that plays there.

::

    with TextbenchEnv("http://127.0.0.1:8000").sync() as env:
        result = env.reset(seed=7, layout_seed=3)
        while not result.done:
            result = env.step(ask_my_model(result.observation.messages))
"""

from textbench.integrations.openenv.client import TextbenchAction, TextbenchEnv, TextbenchObservation, TextbenchState
from textbench.integrations.openenv.environment import ServedGame, TextbenchEnvironment

__all__ = [
    "ServedGame",
    "TextbenchAction",
    "TextbenchEnv",
    "TextbenchEnvironment",
    "TextbenchObservation",
    "TextbenchState",
]
