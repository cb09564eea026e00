"""MS-GRPO: multi-step group-relative policy optimisation of a language model on a text game.

The algorithm reads from :mod:`agents.msgrpo.trainer`; ``python -m agents.msgrpo --config FILE`` runs it. Importing this
package does not import torch; the names that need it are loaded when they are used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from agents.msgrpo.configuration.config import MSGRPOConfig, training_config_schema
from agents.msgrpo.credit.advantages import group_advantages
from agents.msgrpo.credit.batch import episode_return
from agents.msgrpo.draws.sampling import sample_episodes
from agents.msgrpo.errors import ConfigError
from textgames.extras import install_command

if TYPE_CHECKING:
    from agents.msgrpo.learner.loss import policy_loss
    from agents.msgrpo.trainer import MSGRPOTrainer

__all__ = [
    "ConfigError",
    "MSGRPOConfig",
    "MSGRPOTrainer",
    "episode_return",
    "group_advantages",
    "policy_loss",
    "sample_episodes",
    "training_config_schema",
]

_NEED_TORCH = {"policy_loss": "agents.msgrpo.learner.loss", "MSGRPOTrainer": "agents.msgrpo.trainer"}


def __getattr__(name: str) -> Any:
    if name not in _NEED_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_NEED_TORCH[name]), name)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "transformers", "peft", "accelerate"):
            raise
        raise ModuleNotFoundError(
            f"{name} needs {error.name}, which is not installed: {install_command('train')}", name=error.name
        ) from error
