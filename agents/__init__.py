"""Players of text games: language-agent policies, baselines, and the loop that plays them. Begin at :mod:`agents.turn`.

Names are imported when they are first used, so ``import agents`` loads neither torch nor an API client.
"""

from typing import Any

import lazy_loader

_named, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name in ("Agent", "Runner"):
        raise ImportError(
            f"{name} is a name of openai-agents, and this package 'agents' is textbench's, which has overwritten files "
            "of it: give openai-agents an environment of its own (python3 -m venv .venv && . .venv/bin/activate)"
        )
    return _named(name)
