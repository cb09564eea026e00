"""MS-GRPO: multi-step group-relative policy optimisation of a language model on a text game.

The algorithm reads from :mod:`agents.msgrpo.trainer`; ``python -m agents.msgrpo --config FILE`` runs it. Names are
imported when they are first used, so ``import agents.msgrpo`` loads no torch.
"""

from typing import Any

import lazy_loader

from textgames.extras import install_command

_named, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    try:
        return _named(name)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "transformers", "peft", "accelerate"):
            raise
        raise ModuleNotFoundError(
            f"{name} needs {error.name}, which is not installed: {install_command('train')}", name=error.name
        ) from error
