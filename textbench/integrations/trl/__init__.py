"""The games in TRL's trainers (extra ``trl``).

Two ways to train with ``trl.GRPOTrainer``, and what each of them is given:

* :class:`StepRollouts` is a ``rollout_func``: every step is a sample of its own, whose prompt has the rules and the
  observation and no history, and is credited with its episode's return, as MS-GRPO credits it;
* :func:`game_environment` makes an ``environment_factory``: an episode is one growing conversation of tool calls.

Both take :func:`start_dataset`, in which every row is a group: its members begin at the same start. ``python -m
textbench.integrations.trl`` trains a model with either. Warm starts for ``SFTTrainer`` and ``DPOTrainer`` are written
by ``textbench export``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textbench.integrations.trl.action_calls import read_actions_as_calls
    from textbench.integrations.trl.environment import GameEnvironment, game_environment
    from textbench.integrations.trl.rollouts import StepRollouts, episode_return
    from textbench.integrations.trl.starts import start_dataset

_MODULE_OF = {
    "GameEnvironment": "environment",
    "StepRollouts": "rollouts",
    "episode_return": "rollouts",
    "game_environment": "environment",
    "read_actions_as_calls": "action_calls",
    "start_dataset": "starts",
}

__all__ = [
    "GameEnvironment",
    "StepRollouts",
    "episode_return",
    "game_environment",
    "read_actions_as_calls",
    "start_dataset",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value
